#include "riffle/model/init.h"

#include <cmath>

#include <ATen/Parallel.h>

#include "riffle/base/random.h"

namespace riffle {
namespace {

// Each row (output channel) has its own sequence of draws, so rows can be filled by any number of
// threads.
template <typename Draw>
torch::Tensor filled(std::uint64_t seed, const std::string& name, torch::IntArrayRef shape,
                     const Draw& draw) {
  const Purpose purpose("init/" + name);
  torch::Tensor weight = torch::empty(shape, torch::kFloat32);
  const std::int64_t rows = shape[0];
  const std::int64_t columns = weight.numel() / rows;
  float* values = weight.data_ptr<float>();
  at::parallel_for(0, rows, 1 + 4096 / columns, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      Random random(seed, purpose, static_cast<std::uint64_t>(row));
      for (std::int64_t i = 0; i < columns; ++i) values[row * columns + i] = draw(random);
    }
  });
  return weight;
}

}  // namespace

torch::Tensor Init::kaiming_normal(const std::string& name, torch::IntArrayRef shape) const {
  const float deviation = std::sqrt(2.0f / static_cast<float>(shape[0] * shape[2] * shape[3]));
  return filled(seed_, path_ + name, shape,
                [deviation](Random& random) { return deviation * random.normal(); })
      .contiguous(torch::MemoryFormat::ChannelsLast);
}

torch::Tensor Init::normal(const std::string& name, torch::IntArrayRef shape,
                           float deviation) const {
  return filled(seed_, path_ + name, shape,
                [deviation](Random& random) { return deviation * random.normal(); });
}

torch::Tensor Init::linear_uniform(const std::string& name, torch::IntArrayRef shape,
                                   std::int64_t inputs) const {
  const float bound = 1.0f / std::sqrt(static_cast<float>(inputs));
  return filled(seed_, path_ + name, shape,
                [bound](Random& random) { return random.uniform(-bound, bound); });
}

}  // namespace riffle
