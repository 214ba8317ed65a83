// The index beside the definition of what it does, and each device beside the other.

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "riffle/base/random.h"
#include "riffle/base/text.h"
#include "riffle/buffer/testing/naive_index.h"
#include "riffle/buffer/testing/nearest_index.h"

namespace riffle {
namespace {

// A random life of an index, beside the definition.
class History {
 public:
  enum class Kind { scattered, clusters, duplicates, all_equal, lattice, axes, near_ties, kinds };

  History(std::uint64_t number, const std::string& device, bool weighted)
      : random_(number, Purpose("nearest index history"), 0),
        kind_(static_cast<Kind>(number % static_cast<int>(Kind::kinds))) {
    static constexpr std::int64_t kSizes[] = {2, 3, 5, 8, 17, 33, 50};
    static constexpr std::int64_t kDims[] = {1, 2, 3, 8, 31, 64, 70, 130};
    static constexpr FeatureType kTypes[] = {FeatureType::float32, FeatureType::float16,
                                             FeatureType::bfloat16};
    config_.slots = kSizes[random_.below(std::size(kSizes))];
    config_.dim = kDims[random_.below(std::size(kDims))];
    config_.type = kTypes[number % 3];
    config_.tie = number / 2 % 2 == 0 ? TieRule::older : TieRule::newer;
    config_.neighbours = 1 + static_cast<std::int64_t>(random_.below(4));
    config_.device = at::Device(device);
    static constexpr double kLimits[] = {1, 1.5, 4, 1e300};
    static constexpr double kReaches[] = {0, MergeRule::kLeastReach, 0.3, 0.5, 1.7};
    if (weighted) {
      config_.merge = MergeRule{.quarters = static_cast<int>(random_.below(5)),
                                .stays = number / 4 % 2 == 0 ? StayRule::drawn : StayRule::heavier,
                                .weight_limit = kLimits[random_.below(std::size(kLimits))],
                                .reach = kReaches[random_.below(std::size(kReaches))]};
    }
    whole_weights_ = random_.chance(0.5f);
    index_ = NearestIndex::create(config_);
    naive_.emplace(config_);
  }

  void run(int steps) {
    for (int step = 0; step < steps && !::testing::Test::HasFatalFailure(); ++step) {
      switch (random_.below(6)) {
        case 0:
        case 1:
          change(false);
          break;
        case 2:
          change(true);
          break;
        case 3:
          erase();
          break;
        case 4:
          take(1 + static_cast<std::int64_t>(random_.below(4)));
          break;
        case 5:
          if (random_.below(3) == 0) take(config_.slots);
          if (random_.below(4) == 0) move();
          if (config_.merge && random_.below(3) == 0) {
            index_->halve_weights();
            naive_->halve_weights();
          }
          if (config_.merge && naive_->size() > 0) {
            const auto present = naive_->slots();
            const std::int64_t slot = present[random_.below(present.size())];
            index_->reinforce(std::vector{slot}, std::vector{3.0});
            naive_->reinforce(slot, 3.0);
          }
          break;
      }
      ASSERT_EQ(index_->size(), naive_->size());
    }
    take(config_.slots);
  }

 private:
  std::vector<float> feature() {
    std::vector<float> made(config_.dim);
    const auto scatter = [&](float scale) {
      for (float& x : made) x += scale * random_.normal();
    };
    switch (kind_) {
      case Kind::clusters: {
        Random centre(random_.below(3), Purpose("centre"), 0);
        for (float& x : made) x = centre.normal();
        scatter(0.1f);
        break;
      }
      case Kind::duplicates:
        if (!given_.empty() && random_.chance(0.7f)) return given_[random_.below(given_.size())];
        scatter(1.0f);
        break;
      case Kind::all_equal:
        std::fill(made.begin(), made.end(), 0.3f);
        break;
      case Kind::lattice:
        for (float& x : made) x = static_cast<float>(random_.below(3)) - 1.0f;
        break;
      case Kind::axes:
        made[random_.below(made.size())] = random_.chance(0.5f) ? 1.0f : -1.0f;
        break;
      case Kind::near_ties: {
        Random centre(random_.below(2), Purpose("centre"), 0);
        for (float& x : made) x = centre.normal();
        scatter(1e-3f * (1.0f + 1e-4f * random_.uniform()));
        break;
      }
      default:
        scatter(1.0f);
    }
    if (std::all_of(made.begin(), made.end(), [](float x) { return x == 0; })) made[0] = 1;
    given_.push_back(made);
    return made;
  }

  Slots some_slots() {
    Slots all(config_.slots);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
    for (std::size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[random_.below(i)]);
    all.resize(1 + random_.below(all.size()));
    return all;
  }

  void change(bool blend) {
    const Slots slots = some_slots();
    Ages ages;
    std::vector<std::vector<float>> features;
    Slots new_slots;
    std::vector<double> new_weights;
    for (const std::int64_t slot : slots) {
      if (!naive_->contains(slot)) {
        ages_[slot] = arrivals_++ * 7919 % 1009;
        new_slots.push_back(slot);
        // Weights of one are the usual case, and give the most ties.
        new_weights.push_back(whole_weights_ ? 1.0 : 0.25 + 4 * random_.uniform());
      }
      ages.push_back(ages_[slot]);
      features.push_back(feature());
    }
    if (config_.merge) index_->weigh(new_slots, new_weights);
    if (blend) {
      index_->blend(slots, ages, matrix(features), 0.5);
    } else {
      index_->set(slots, ages, matrix(features));
    }
    const auto stored = stored_rows(*index_, slots);
    for (std::size_t i = 0; i < slots.size(); ++i) {
      const double weight = config_.merge ? index_->weights()[slots[i]] : 1.0;
      naive_->put(slots[i], ages[i], stored[i], weight);
    }
  }

  void erase() {
    Slots present;
    for (const std::int64_t slot : some_slots()) {
      if (naive_->contains(slot) && random_.chance(0.5f)) present.push_back(slot);
    }
    index_->erase(present);
    for (const std::int64_t slot : present) naive_->erase(slot);
  }

  void take(std::int64_t n) {
    n = std::min(n, naive_->size());
    ASSERT_EQ(index_->take_most_redundant(n), naive_->take(n));
    if (!config_.merge) return;
    for (const std::int64_t slot : naive_->slots()) {
      ASSERT_EQ(index_->weights()[slot], naive_->weight(slot));
    }
  }

  void move() {
    const NearestIndex::State state = index_->save();
    index_ = NearestIndex::create(config_);
    index_->restore(state);
  }

  Random random_;
  Kind kind_;
  NearestIndexConfig config_;
  bool whole_weights_ = true;
  std::optional<NaiveIndex> naive_;
  std::unique_ptr<NearestIndex> index_;
  std::map<std::int64_t, std::uint64_t> ages_;
  std::uint64_t arrivals_ = 0;
  std::vector<std::vector<float>> given_;
};

using NearestIndexDefinition = OnEachDevice;

void run_histories(const std::string& device, bool weighted) {
  // Threads have nothing to share in matrices this small.
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  for (std::uint64_t number = 0; number < 2100 && !testing::Test::HasFatalFailure(); ++number) {
    SCOPED_TRACE(cat("history ", number));
    History history(number, device, weighted);
    history.run(24);
  }
  at::set_num_threads(threads);
}

TEST_P(NearestIndexDefinition, TakesWhatTheDefinitionTakesInRandomHistories) {
  run_histories(GetParam(), /*weighted=*/false);
}

TEST_P(NearestIndexDefinition, MergesWhatTheDefinitionMergesInRandomHistories) {
  run_histories(GetParam(), /*weighted=*/true);
}

// Sets rows that are as old as their slots say.
void put_in_both(NearestIndex& index, NaiveIndex& naive, const Slots& slots,
                 const std::vector<std::vector<float>>& features) {
  const Ages ages(slots.begin(), slots.end());
  index.set(slots, ages, matrix(features));
  const auto stored = stored_rows(index, slots);
  for (std::size_t i = 0; i < slots.size(); ++i) naive.put(slots[i], ages[i], stored[i]);
}

TEST_P(NearestIndexDefinition, TakesWhatTheDefinitionTakesOverSeveralBlocks) {
  for (const int quarters : {-1, 2, 4}) {
    NearestIndexConfig made = config(2300, 24);
    made.type = quarters == 2 ? FeatureType::float16 : FeatureType::float32;
    made.neighbours = 2;
    if (quarters >= 0) made.merge = MergeRule{.quarters = quarters};
    const auto index = NearestIndex::create(made);
    NaiveIndex naive(made);
    Random random(3, Purpose("nearest index blocks"), 0);
    Slots slots;
    std::vector<std::vector<float>> features;
    const auto give = [&](std::int64_t slot) {
      slots.push_back(slot);
      std::vector<float> row(24);
      for (float& x : row) x = random.normal();
      // Half of the rows are near an earlier one.
      if (features.size() > 1 && random.chance(0.5f)) {
        const auto& near = features[random.below(features.size())];
        for (std::size_t i = 0; i < row.size(); ++i) row[i] = near[i] + 0.05f * row[i];
      }
      features.push_back(row);
    };
    const auto put = [&] {
      put_in_both(*index, naive, slots, features);
      slots.clear();
      features.clear();
    };
    for (std::int64_t slot = 0; slot < 2300; ++slot) give(slot);
    put();
    EXPECT_EQ(index->take_most_redundant(5), naive.take(5));
    for (std::int64_t slot = 100; slot < 220; ++slot) {
      if (naive.contains(slot)) give(slot);
    }
    put();
    EXPECT_EQ(index->take_most_redundant(12), naive.take(12));
  }
}

TEST_P(NearestIndexDefinition, NearestDistancesAreThoseOfTheDefinition) {
  for (const FeatureType type :
       {FeatureType::float32, FeatureType::float16, FeatureType::bfloat16}) {
    NearestIndexConfig made = config(1500, 19);
    made.type = type;
    const auto index = NearestIndex::create(made);
    NaiveIndex naive(made);
    Random random(1, Purpose("nearest distances"), 0);
    Slots slots;
    std::vector<std::vector<float>> features;
    for (std::int64_t slot = 0; slot < 1500; slot += 1 + slot % 2) {
      slots.push_back(slot);
      features.emplace_back(19);
      for (float& x : features.back()) x = random.normal();
    }
    put_in_both(*index, naive, slots, features);
    const at::Tensor nearest = index->nearest_distances();
    ASSERT_EQ(nearest.numel(), 1500);
    for (std::int64_t slot = 0; slot < 1500; slot += 10) {
      const double expected = naive.contains(slot) ? naive.nearest(slot) : 2.0;
      EXPECT_NEAR(nearest[slot].item<float>(), expected, 1e-5) << slot;
    }
  }
}

// The answer is a function of the history alone, so both devices give the same at sizes where the
// definition is too slow.
TEST(NearestIndex, CpuAndGpuTakeTheSameRows) {
  if (!at::hasCUDA()) GTEST_SKIP() << "no GPU here";
  for (const int quarters : {-1, 0, 1, 2, 3, 4}) {
    static constexpr FeatureType kTypes[] = {FeatureType::float16, FeatureType::float32,
                                             FeatureType::bfloat16};
    NearestIndexConfig config;
    config.slots = 20000;
    config.dim = 100;
    config.type = kTypes[(quarters + 1) % 3];
    config.neighbours = 4;
    if (quarters >= 0) {
      config.merge = MergeRule{.quarters = quarters,
                               .stays = quarters % 2 == 0 ? StayRule::drawn : StayRule::heavier};
    }
    auto cpu = NearestIndex::create(config);
    config.device = at::Device(at::kCUDA);
    auto gpu = NearestIndex::create(config);
    Random random(7, Purpose("nearest index devices"), 0);
    const at::Tensor centres = at::empty({500, 100});
    for (std::int64_t i = 0; i < centres.numel(); ++i) {
      centres.data_ptr<float>()[i] = random.normal();
    }
    const auto change = [&](const Slots& slots) {
      const auto count = static_cast<std::int64_t>(slots.size());
      const Ages ages(slots.begin(), slots.end());
      const at::Tensor features = at::empty({count, 100});
      float* out = features.data_ptr<float>();
      for (std::int64_t r = 0; r < count; ++r) {
        const float* centre = centres.data_ptr<float>() + 100 * random.below(500);
        // Some are equal.
        const float scatter = random.chance(0.1f) ? 0.0f : 0.3f;
        for (int i = 0; i < 100; ++i) *out++ = centre[i] + scatter * random.normal();
      }
      cpu->blend(slots, ages, features, 0.5);
      gpu->blend(slots, ages, features, 0.5);
    };
    Slots all(20000);
    std::iota(all.begin(), all.end(), 0);
    change(all);
    EXPECT_TRUE(cpu->rows().equal(gpu->rows().cpu()));
    for (int round = 0; round < 5; ++round) {
      ASSERT_EQ(gpu->take_most_redundant(300), cpu->take_most_redundant(300));
      Slots some;
      for (std::int64_t slot = round; slot < 20000; slot += 17) some.push_back(slot);
      change(some);
    }
    // What one device saved, the other takes up.
    const NearestIndex::State of_cpu = cpu->save();
    cpu->restore(gpu->save());
    gpu->restore(of_cpu);
    EXPECT_EQ(gpu->take_most_redundant(300), cpu->take_most_redundant(300));
    EXPECT_LT(gpu->stats().largest_rounding, gpu->stats().allowed_rounding);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, NearestIndexDefinition, ::testing::Values("cpu", "cuda"),
                         [](const auto& device) { return device.param; });

}  // namespace
}  // namespace riffle
