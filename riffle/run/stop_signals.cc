#include "riffle/run/stop_signals.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <ctime>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "riffle/base/error.h"
#include "riffle/base/text.h"

namespace riffle {
namespace {

constexpr char kSignal = 's';
constexpr char kEnd = 'e';
constexpr std::array<int, 3> kHeeded = {SIGINT, SIGTERM, SIGHUP};

constexpr std::int64_t kRepeatNanoseconds = 1'000'000'000;

volatile std::sig_atomic_t handler_pipe = -1;
// By the steady clock; 0: none came yet.
std::atomic<std::int64_t> first_signal = 0;
static_assert(std::atomic<std::int64_t>::is_always_lock_free);
std::array<struct sigaction, kHeeded.size()> before;

// Calls only what a signal handler may call.
void handle(int number) {
  const int error = errno;
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  const std::int64_t now = time.tv_sec * std::int64_t{1'000'000'000} + time.tv_nsec;
  std::int64_t first = 0;
  if (handler_pipe >= 0 && first_signal.compare_exchange_strong(first, now)) {
    [[maybe_unused]] const auto written = ::write(handler_pipe, &kSignal, 1);
  } else if (now - first_signal >= kRepeatNanoseconds && (number != SIGHUP || handler_pipe < 0)) {
    // A terminal that goes away may say so at any time; anybody else means it.
    std::signal(number, SIG_DFL);
    ::raise(number);
  }
  errno = error;
}

}  // namespace

StopSignals::StopSignals(std::function<void(const char*)> stop, double seconds)
    : stop_(std::move(stop)) {
  if (::pipe2(pipe_.data(), O_CLOEXEC) != 0) {
    throw Error(cat("cannot make a pipe: ", std::strerror(errno)), ErrorKind::failure);
  }
  handler_pipe = pipe_[1];
  first_signal = 0;
  struct sigaction action {};
  action.sa_handler = handle;
  action.sa_flags = SA_RESTART;
  for (std::size_t i = 0; i < kHeeded.size(); ++i) {
    ::sigaction(kHeeded[i], nullptr, &before[i]);
    if (before[i].sa_handler == handle) before[i].sa_handler = SIG_DFL;  // left by another object
    const bool keeps_ignoring = kHeeded[i] == SIGHUP && before[i].sa_handler == SIG_IGN;
    if (!keeps_ignoring) ::sigaction(kHeeded[i], &action, nullptr);
  }
  thread_ = std::thread([this, seconds] { watch(seconds); });
}

StopSignals::~StopSignals() {
  handler_pipe = -1;
  // After a signal the handler stays: repeats must not end the process before it has said how the
  // work ended.
  for (std::size_t i = 0; first_signal == 0 && i < kHeeded.size(); ++i) {
    ::sigaction(kHeeded[i], &before[i], nullptr);
  }
  [[maybe_unused]] const auto written = ::write(pipe_[1], &kEnd, 1);
  thread_.join();
  ::close(pipe_[0]);
  ::close(pipe_[1]);
}

void StopSignals::watch(double seconds) {
  using Clock = std::chrono::steady_clock;
  using Milliseconds = std::chrono::duration<double, std::milli>;
  constexpr double kLongestPoll = 1e6;
  const auto start = Clock::now();
  bool called = false;
  while (true) {
    const double left = 1000 * seconds - Milliseconds(Clock::now() - start).count();
    const bool timed = seconds > 0 && !called;
    pollfd wait = {pipe_[0], POLLIN, 0};
    const int ready =
        ::poll(&wait, 1, timed ? static_cast<int>(std::clamp(left, 0.0, kLongestPoll)) : -1);
    char byte = 0;
    if (ready > 0 && ::read(pipe_[0], &byte, 1) == 1 && byte == kEnd) return;
    const bool over = timed && left <= 0;
    if (called || (byte != kSignal && !over)) continue;
    called = true;
    stop_(over ? "time limit reached" : "asked to stop (again to quit without saving)");
  }
}

}  // namespace riffle
