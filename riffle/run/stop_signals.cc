#include "riffle/run/stop_signals.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>

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

volatile std::sig_atomic_t handler_pipe = -1;
std::array<struct sigaction, kHeeded.size()> before;

// Calls only what a signal handler may call.
void handle(int) {
  const int error = errno;
  // A terminal that goes away may say so more than once.
  for (const int signal : kHeeded) std::signal(signal, signal == SIGHUP ? SIG_IGN : SIG_DFL);
  [[maybe_unused]] const auto written = ::write(handler_pipe, &kSignal, 1);
  errno = error;
}

}  // namespace

StopSignals::StopSignals(std::function<void(const char*)> stop, double seconds)
    : stop_(std::move(stop)) {
  if (::pipe2(pipe_.data(), O_CLOEXEC) != 0) {
    throw Error(cat("cannot make a pipe: ", std::strerror(errno)), ErrorKind::failure);
  }
  handler_pipe = pipe_[1];
  struct sigaction action {};
  action.sa_handler = handle;
  action.sa_flags = SA_RESTART;
  for (std::size_t i = 0; i < kHeeded.size(); ++i) {
    ::sigaction(kHeeded[i], nullptr, &before[i]);
    const bool keeps_ignoring = kHeeded[i] == SIGHUP && before[i].sa_handler == SIG_IGN;
    if (!keeps_ignoring) ::sigaction(kHeeded[i], &action, nullptr);
  }
  thread_ = std::thread([this, seconds] { watch(seconds); });
}

StopSignals::~StopSignals() {
  for (std::size_t i = 0; i < kHeeded.size(); ++i) {
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
    stop_(over ? "time limit reached" : "asked to stop");
  }
}

}  // namespace riffle
