// SIGINT and SIGTERM as a wish to stop in good order.
//
// The first one calls `stop` on a thread of its own, once; a second one ends the process at once,
// as if nobody had listened. `stop` is called too when `seconds` have passed (0: never). Handlers
// are put back in the destructor. One object at a time.
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
  std::array<int, 2> pipe_{};  // the handler and the destructor write, the thread reads
  std::thread thread_;
};

}  // namespace riffle
