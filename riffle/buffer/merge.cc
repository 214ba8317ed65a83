#include "riffle/buffer/merge.h"

#include <cmath>

#include <ATen/ATen.h>

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/buffer/minred.h"

namespace riffle {
namespace {

constexpr double kMostHalvings = 1000;  // in one batch: two to this power and one is still finite

}  // namespace

NearestIndexConfig Merge::index_config(const PolicySetting& setting) {
  NearestIndexConfig index = MinRed::index_config(setting);
  index.merge = MergeRule{.quarters = static_cast<int>(4 * setting.config.merge_exponent),
                          .stays = setting.config.stays,
                          .reach = setting.config.merge_reach};
  if (setting.config.weight_limit > 0) index.merge->weight_limit = setting.config.weight_limit;
  return index;
}

Merge::Merge(const PolicySetting& setting)
    : PairPolicy(setting.config, index_config(setting), "merged"),
      half_life_(static_cast<double>(setting.config.half_life)) {}

double Merge::half_lives(std::uint64_t arrival) const {
  return half_life_ > 0 ? static_cast<double>(arrival) / half_life_ : 0.0;
}

void Merge::inserted(std::span<const Slot> slots, const at::Tensor& features) {
  // By the size of the batch alone, so that a run that cannot continue does not begin.
  if (half_lives(slots.size()) > kMostHalvings) {
    throw Error(cat("buffer.half_life=", half_life_, " is too short for stream batches of ",
                    slots.size(), " samples: their weights would be too far apart; give at least ",
                    std::ceil(static_cast<double>(slots.size()) / kMostHalvings), ", or 0"));
  }
  const double halved = std::floor(half_lives(arrivals()));
  const double due = std::floor(half_lives(arrivals() + slots.size())) - halved;
  // Halving reports what a GPU refused before: better now, while nothing has changed.
  if (due > 0) index().check();
  std::vector<double> weights;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    weights.push_back(std::exp2(half_lives(arrivals() + i) - halved));
  }
  index().weigh(slots, weights);
  set_features(slots, features);
  for (double done = 0; done < due; ++done) index().halve_weights();
  record_arrivals(slots);
}

}  // namespace riffle
