// For tests: pictures of noise, the same for the same position.
#pragma once

#include <cstdint>

#include <torch/types.h>

#include "riffle/base/random.h"

namespace riffle {

inline torch::Tensor random_pictures(std::int64_t count, std::uint64_t position,
                                     std::int64_t size = 32) {
  torch::Tensor batch = torch::empty({count, 3, size, size});
  Random random(1, Purpose("test/pictures"), position);
  for (std::int64_t i = 0; i < batch.numel(); ++i) batch.data_ptr<float>()[i] = random.normal();
  return batch;
}

}  // namespace riffle
