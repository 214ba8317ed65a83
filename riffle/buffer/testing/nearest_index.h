// For the tests of the nearest-neighbour index, on each device that is there.
#pragma once

#include <algorithm>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "riffle/buffer/nearest_index.h"

namespace riffle {

using Slots = std::vector<std::int64_t>;
using Ages = std::vector<std::uint64_t>;

class OnEachDevice : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "cuda" && !at::hasCUDA()) GTEST_SKIP() << "no GPU here";
  }
  NearestIndexConfig config(std::int64_t slots, std::int64_t dim) const {
    NearestIndexConfig made;
    made.slots = slots;
    made.dim = dim;
    made.device = at::Device(GetParam());
    return made;
  }
};

inline std::vector<std::vector<double>> stored_rows(const NearestIndex& index, const Slots& slots) {
  const at::Tensor all = index.rows().to(at::kCPU, at::kDouble).contiguous();
  std::vector<std::vector<double>> rows;
  for (const std::int64_t slot : slots) {
    const double* at = all.data_ptr<double>() + slot * all.size(1);
    rows.emplace_back(at, at + all.size(1));
  }
  return rows;
}

inline Slots slots_of(const std::vector<Removal>& removals) {
  Slots slots;
  for (const Removal& removal : removals) slots.push_back(removal.slot);
  return slots;
}

// For messages of failed tests.
inline void PrintTo(const Removal& removal, std::ostream* out) {
  *out << removal.slot << " into " << removal.into;
}

inline at::Tensor matrix(const std::vector<std::vector<float>>& rows) {
  at::Tensor made = at::empty(
      {static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(rows[0].size())});
  for (std::size_t r = 0; r < rows.size(); ++r) {
    std::copy(rows[r].begin(), rows[r].end(), made.data_ptr<float>() + r * rows[r].size());
  }
  return made;
}

}  // namespace riffle
