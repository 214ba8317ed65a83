// For tests: the program as a process that runs beside the test, to be waited for, measured and
// killed.
#pragma once

#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "riffle/base/clock.h"

namespace riffle {

namespace fs = std::filesystem;
inline std::string content(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// It is killed with this object, unless it ended before.
class Process {
 public:
  Process(const fs::path& folder, std::vector<std::string> arguments,
          std::vector<std::string> launcher = {})
      : errors_(folder / ("stderr-" + std::to_string(++started_) + ".txt")),
        output_(folder / ("stdout-" + std::to_string(started_) + ".txt")) {
    arguments.insert(arguments.begin(), RIFFLE_PROGRAM);
    arguments.insert(arguments.begin(), launcher.begin(), launcher.end());
    std::vector<char*> argv;
    for (auto& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ != 0) return;
    constexpr int kNew = O_WRONLY | O_CREAT | O_TRUNC;
    ::dup2(::open(errors_.c_str(), kNew, 0644), STDERR_FILENO);
    ::dup2(::open(output_.c_str(), kNew, 0644), STDOUT_FILENO);
    if (::chdir(folder.c_str()) == 0) ::execvp(argv[0], argv.data());
    ::_exit(127);
  }
  ~Process() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Process(const Process&) = delete;

  pid_t id() const { return pid_; }
  void signal(int number) const { ::kill(pid_, number); }
  // Returns the status as waitpid gives it, or nothing if the process did not end in time.
  std::optional<int> ended(double seconds) {
    const auto start = Clock::now();
    int status = 0;
    while (::wait4(pid_, &status, WNOHANG, &usage_) == 0) {
      if (seconds_since(start) > seconds) return std::nullopt;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    pid_ = -1;
    return status;
  }
  // Returns the most memory that it ever had, once it has ended.
  std::int64_t peak_bytes() const { return std::int64_t{usage_.ru_maxrss} * 1024; }
  std::string errors() const { return content(errors_); }
  std::string output() const { return content(output_); }
  // Returns whether `condition` came true in time and before the process ended.
  bool becomes(const std::function<bool()>& condition, double seconds) {
    const auto start = Clock::now();
    while (!condition()) {
      if (seconds_since(start) > seconds || ended(0.001)) return false;
    }
    return true;
  }
  // Returns whether it said these words in time.
  bool says(const std::string& words, double seconds) {
    return becomes([&] { return errors().find(words) != std::string::npos; }, seconds);
  }
  std::int64_t resident_bytes() const {
    std::ifstream statm("/proc/" + std::to_string(pid_) + "/statm");
    std::int64_t all = 0, resident = 0;
    statm >> all >> resident;
    return resident * ::sysconf(_SC_PAGESIZE);
  }

 private:
  static inline int started_ = 0;
  fs::path errors_;
  fs::path output_;
  pid_t pid_;
  struct rusage usage_ {};
};

}  // namespace riffle
