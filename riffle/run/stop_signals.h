// Turns SIGINT, SIGTERM and SIGHUP into a request to stop in good order. SIGHUP that was ignored
// before, as under nohup, stays ignored.
//
// The first signal calls `stop` once, on a thread of its own. Repeats within a second are the same
// request: a terminal and a shell may both forward it, and timeout(1) sends each signal twice. A
// later one ends the process at once, as without a handler. `stop` is also called when `seconds`
// have passed (0: never). The destructor restores the previous handlers; after a signal it leaves
// one that still ignores repeats. One object at a time.
#pragma once

#include <array>
#include <functional>
#include <thread>

namespace riffle {

class StopSignals {
 public:
  StopSignals(std::function<void(const char* why)> stop, double seconds);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

 private:
  void watch(double seconds);

  std::function<void(const char*)> stop_;
  // The handler and the destructor write, the thread reads.
  std::array<int, 2> pipe_{};
  std::thread thread_;
};

}  // namespace riffle
