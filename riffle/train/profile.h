// Where the time of an update goes: kernels of the GPU, or operations of the CPU, put together by
// what they are for.
//
// Measured with LibTorch's own profiler, which slows a CPU run down by some percent. One at a time
// in a process.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <c10/core/Device.h>

namespace riffle {

struct ProfilePart {
  std::string name;
  double ms = 0;  // an update
  double share = 0;
  std::int64_t calls = 0;          // kernels or operations an update; 0: not counted
  std::vector<std::string> first;  // the costliest of them, with their ms
};

class Profile {
 public:
  // Begins to measure.
  explicit Profile(c10::Device device);
  ~Profile();

  // Ends it. Parts by cost, the last one what is left of the wall-clock time: the device waits, or
  // code outside of LibTorch.
  std::vector<ProfilePart> finish(std::int64_t updates);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// As lines of text, with a heading.
std::string profile_table(const std::string& heading, const std::vector<ProfilePart>& parts);

}  // namespace riffle
