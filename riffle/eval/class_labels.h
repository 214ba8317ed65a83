// Label names as class numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace riffle {

struct ClassLabels {
  std::vector<std::string> names;  // sorted; a label's class is its place here
  at::Tensor train;                // [n] int64, on the CPU
  at::Tensor val;

  std::int64_t count() const { return static_cast<std::int64_t>(names.size()); }
};

// Returns the classes of the training labels. Throws Error if there is only one, and if validation
// labels are not among them, counting and naming those.
ClassLabels class_labels(const std::vector<std::string>& train,
                         const std::vector<std::string>& val);

}  // namespace riffle
