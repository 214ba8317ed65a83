// Where the time of an update goes: kernels of the GPU, or operations of the CPU, grouped by what
// they are for.
//
// Measured with LibTorch's own profiler, which slows a CPU run down by a few percent. One at a time
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
  // Per update.
  double ms = 0;
  double share = 0;
  // Kernels or operations per update; 0: not counted.
  std::int64_t calls = 0;
  // The costliest of them, with their ms.
  std::vector<std::string> first;
};

class Profile {
 public:
  // Begins to measure.
  explicit Profile(c10::Device device);
  ~Profile();

  // Ends it. Returns parts by cost; the last one is the rest of the wall-clock time, in which the
  // device waits or code outside of LibTorch runs.
  std::vector<ProfilePart> finish(std::int64_t updates);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Returns the parts as lines of text, with a heading.
std::string profile_table(const std::string& heading, const std::vector<ProfilePart>& parts);

}  // namespace riffle
