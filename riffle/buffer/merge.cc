#include "riffle/buffer/merge.h"

#include <cmath>

#include <ATen/ATen.h>

#include "riffle/buffer/minred.h"

namespace riffle {
namespace {

constexpr const char* kHalvings = "halvings";

}  // namespace

NearestIndexConfig Merge::index_config(const PolicySetting& setting) {
  NearestIndexConfig index = MinRed::index_config(setting);
  index.merge = MergeRule{.quarters = static_cast<int>(4 * setting.config.merge_exponent),
                          .stays = setting.config.stays};
  return index;
}

Merge::Merge(const PolicySetting& setting)
    : PairPolicy(setting.config, index_config(setting), "merged"),
      half_life_(static_cast<double>(setting.config.half_life)) {}

void Merge::inserted(std::span<const Slot> slots, const at::Tensor& features) {
  const auto half_lives = [this](std::uint64_t arrival) {
    return half_life_ > 0 ? static_cast<double>(arrival) / half_life_ : 0.0;
  };
  std::vector<double> weights;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    weights.push_back(std::exp2(half_lives(arrivals() + i) - static_cast<double>(halvings_)));
  }
  index().weigh(slots, weights);
  PairPolicy::inserted(slots, features);
  for (const double passed = half_lives(arrivals()); halvings_ + 1 <= passed; ++halvings_) {
    index().halve_weights();
  }
}

NamedTensors Merge::save() const {
  NamedTensors state = PairPolicy::save();
  state.emplace_back(kHalvings, integers_tensor(std::vector<std::int64_t>{halvings_}));
  return state;
}

void Merge::restore(const NamedTensors& state) {
  PairPolicy::restore(state);
  halvings_ = find_integers(state, kHalvings, 1).front();
}

}  // namespace riffle
