#include "riffle/base/child_process.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "riffle/base/error.h"
#include "riffle/base/text.h"

extern char** environ;

namespace riffle {
namespace {

struct PipeEnds {
  PipeEnds() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
      throw Error(cat("cannot make a pipe: ", std::strerror(errno)), ErrorKind::failure);
    }
    read = ends[0];
    write = ends[1];
  }
  int read = -1;
  int write = -1;
};

std::vector<char*> environment_without(const std::vector<std::string>& names) {
  std::vector<char*> kept;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    if (std::ranges::find(names, name) == names.end()) kept.push_back(*entry);
  }
  kept.push_back(nullptr);
  return kept;
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& command, ChildErrors errors,
                           const std::vector<std::string>& without)
    : name_(command.at(0)) {
  // A child that died is found out by its missing answer, not by a signal.
  std::signal(SIGPIPE, SIG_IGN);
  const PipeEnds input;
  const PipeEnds output;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input.read, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output.write, STDOUT_FILENO);
  int error_end = -1;
  if (errors == ChildErrors::piped) {
    const PipeEnds pipe;
    errors_.descriptor = pipe.read;
    error_end = pipe.write;
    posix_spawn_file_actions_adddup2(&actions, error_end, STDERR_FILENO);
  }
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // A signal that this process ignores or blocks is none of the child's concern.
  sigset_t none;
  sigemptyset(&none);
  sigset_t pipe_signal;
  sigemptyset(&pipe_signal);
  sigaddset(&pipe_signal, SIGPIPE);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &pipe_signal);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::vector<std::string> words = command;
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const int failure = posix_spawn(&pid_, name_.c_str(), &actions, &attributes, arguments.data(),
                                  environment_without(without).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  ::close(input.read);
  ::close(output.write);
  if (error_end >= 0) ::close(error_end);
  input_ = input.write;
  output_.descriptor = output.read;
  if (failure != 0) {
    ::close(input_);
    output_.close();
    errors_.close();
    throw Error(cat("cannot start ", name_, ": ", std::strerror(failure)), ErrorKind::failure);
  }
}

ChildProcess::~ChildProcess() {
  // First, so that it cannot wait for somebody to read.
  output_.close();
  errors_.close();
  wait();
}

void ChildProcess::write_line(const std::string& line) {
  const std::string text = line + '\n';
  for (std::size_t at = 0; at < text.size();) {
    const auto written = ::write(input_, text.data() + at, text.size() - at);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return;
    at += static_cast<std::size_t>(written);
  }
}

std::string ChildProcess::read_line() {
  while (read_ahead_.empty()) {
    if (ended()) throw Error(cat(name_, " ended before it answered"), ErrorKind::failure);
    output_.read(true);
    read_ahead_ = output_.take_lines();
  }
  std::string line = std::move(read_ahead_.front());
  read_ahead_.erase(read_ahead_.begin());
  return line;
}

std::vector<std::string> ChildProcess::lines() {
  output_.read(false);
  std::vector<std::string> all = std::move(read_ahead_);
  read_ahead_.clear();
  for (auto& line : output_.take_lines()) all.push_back(std::move(line));
  return all;
}

std::vector<std::string> ChildProcess::error_lines() {
  errors_.read(false);
  return errors_.take_lines();
}

void ChildProcess::signal(int number) const {
  if (pid_ > 0) ::kill(pid_, number);
}

void ChildProcess::close_input() {
  if (input_ >= 0) ::close(input_);
  input_ = -1;
}

std::string ChildProcess::wait() {
  close_input();
  if (pid_ < 0) return {};
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  if (WIFSIGNALED(status)) {
    return cat("signal ", WTERMSIG(status), " (", ::strsignal(WTERMSIG(status)), ")");
  }
  return cat("exit code ", WEXITSTATUS(status));
}

void ChildProcess::Pipe::read(bool wait) {
  std::array<char, 4096> chunk{};
  while (descriptor >= 0) {
    pollfd ready = {descriptor, POLLIN, 0};
    if (::poll(&ready, 1, wait ? -1 : 0) <= 0) {
      if (wait && errno == EINTR) continue;
      return;
    }
    const auto got = ::read(descriptor, chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return close();
    rest.append(chunk.data(), static_cast<std::size_t>(got));
    wait = false;
  }
}

std::vector<std::string> ChildProcess::Pipe::take_lines() {
  std::vector<std::string> lines;
  std::size_t at = 0;
  for (auto end = rest.find('\n'); end != std::string::npos; end = rest.find('\n', at)) {
    lines.push_back(rest.substr(at, end - at));
    at = end + 1;
  }
  rest.erase(0, at);
  return lines;
}

void ChildProcess::Pipe::close() {
  if (descriptor >= 0) ::close(descriptor);
  descriptor = -1;
}

}  // namespace riffle
