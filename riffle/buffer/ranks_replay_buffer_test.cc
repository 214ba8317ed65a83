// Run alone and under mpirun as several ranks: one buffer divided over ranks keeps, evicts and
// draws what one process with the whole buffer does.
#include <map>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "riffle/base/error.h"
#include "riffle/base/random.h"
#include "riffle/buffer/memory_plan.h"
#include "riffle/buffer/replay_buffer.h"
#include "riffle/dist/ranks.h"
#include "riffle/tensors/unit_length.h"

namespace riffle {
namespace {

constexpr int kSide = 8;
constexpr std::int64_t kFeatures = 8;
// Divided by 1, 2, 3 and 4.
constexpr std::int64_t kBatch = 12;
constexpr std::int64_t kCapacity = 40;

BufferConfig divided_config(const std::string& policy, Storage storage) {
  BufferConfig config;
  config.policy = policy;
  config.capacity = std::to_string(kCapacity);
  config.storage = storage;
  return config;
}

// Of one colour, which tells its index.
at::Tensor picture_of(std::uint64_t index) {
  return at::full({kSide, kSide, 3}, static_cast<std::int64_t>(40 + index * 7 % 200), at::kByte);
}

// Close to those of the same clip, so that policies have something to choose.
at::Tensor feature_of(std::uint64_t index, std::uint64_t turn) {
  const at::Tensor feature = at::empty({kFeatures});
  Random clip(1, Purpose("clip"), index / 5);
  Random own(1, Purpose("feature"), 1000 * turn + index);
  for (std::int64_t i = 0; i < kFeatures; ++i) {
    feature[i] = clip.normal() + 0.1 * own.normal();
  }
  return unit_length(feature.unsqueeze(0))[0];
}

std::vector<Sample> batch_at(std::uint64_t first) {
  std::vector<Sample> samples(kBatch);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    samples[i].index = first + i;
    samples[i].clip = static_cast<std::int64_t>(samples[i].index / 5);
    samples[i].label = std::to_string(samples[i].clip);
  }
  return samples;
}

at::Tensor part_of(const at::Tensor& rows, const Ranks& ranks) {
  const std::int64_t part = ranks.part_of(rows.size(0));
  return rows.narrow(0, ranks.rank() * part, part);
}

class RanksReplayBuffer : public testing::Test {
 protected:
  void expect_one_history(const std::string& policy, Storage storage, bool holds_newest);

  Ranks& ranks_ = ranks_of_process();
};

void RanksReplayBuffer::expect_one_history(const std::string& policy, Storage storage,
                                           bool holds_newest) {
  const auto config = divided_config(policy, storage);
  ReplayBuffer whole(config, kBatch, kSide, kFeatures, /*seed=*/3);
  ReplayBuffer divided(config, kBatch, kSide, kFeatures, /*seed=*/3, at::kCPU, ranks_);
  if (holds_newest) {
    whole.hold_newest();
    divided.hold_newest();
  }
  for (std::uint64_t turn = 0; turn < 20; ++turn) {
    const auto samples = batch_at(turn * kBatch);
    std::vector<at::Tensor> pictures, features;
    for (const Sample& sample : samples) {
      pictures.push_back(picture_of(sample.index));
      features.push_back(feature_of(sample.index, 0));
    }
    const at::Tensor all_pictures = at::stack(pictures), all_features = at::stack(features);
    whole.insert(samples, all_pictures, [&](const Pictures&) { return all_features; });
    divided.insert(samples, part_of(all_pictures, ranks_).contiguous(), [&](const Pictures& kept) {
      // They are the rank's own, as they are kept.
      EXPECT_EQ(std::ssize(kept.indices), kBatch / ranks_.size());
      return ranks_.gather(part_of(all_features, ranks_));
    });
    ASSERT_EQ(whole.live(), divided.live()) << "turn " << turn;
    ASSERT_EQ(whole.stats().evictions, divided.stats().evictions);
    for (const Slot slot : whole.live()) {
      ASSERT_EQ(whole.info(slot).index, divided.info(slot).index);
      ASSERT_EQ(whole.info(slot).label, divided.info(slot).label);
    }
    if (whole.size() < kBatch) continue;

    Random one(5, Purpose("draw"), turn), other(5, Purpose("draw"), turn);
    const Draw expected = whole.sample(kBatch, one);
    const Draw draw = divided.sample(kBatch, other);
    ASSERT_EQ(expected.slots, draw.slots);
    const Pictures all = whole.pictures(expected.slots);
    const Pictures own = divided.pictures(draw.slots);
    const std::int64_t part = kBatch / ranks_.size();
    ASSERT_EQ(std::ssize(own.indices), part);
    std::vector<at::Tensor> tracked;
    for (std::int64_t i = 0; i < part; ++i) {
      const auto at = static_cast<std::size_t>(ranks_.rank() * part + i);
      EXPECT_TRUE(
          own.tensor[own.indices[static_cast<std::size_t>(i)]].equal(all.tensor[all.indices[at]]));
      tracked.push_back(feature_of(divided.info(draw.slots[at]).index, turn + 1));
    }
    const at::Tensor tracked_of_all = ranks_.gather(at::stack(tracked));
    whole.track(expected, tracked_of_all);
    divided.track(draw, tracked_of_all);
  }
  // Each picture is with one rank.
  std::int64_t here = 0;
  for (const Slot slot : divided.live()) here += divided.is_here(slot) ? 1 : 0;
  EXPECT_EQ(ranks_.sum(at::full({1}, here, at::kLong)).item<std::int64_t>(), divided.size());
}

TEST_F(RanksReplayBuffer, EvictAndDrawWhatOneProcessDoes) {
  for (const char* policy : {"merge", "minred", "reservoir", "fifo"}) {
    SCOPED_TRACE(policy);
    expect_one_history(policy, Storage::raw, /*holds_newest=*/false);
    expect_one_history(policy, Storage::raw, /*holds_newest=*/true);
  }
}

TEST_F(RanksReplayBuffer, KeepTheSameJpegs) {
  expect_one_history("merge", Storage::jpeg, /*holds_newest=*/false);
}

TEST_F(RanksReplayBuffer, SavePicturesByRank) {
  ReplayBuffer buffer(divided_config("fifo", Storage::raw), kBatch, kSide, kFeatures, 3, at::kCPU,
                      ranks_);
  const auto samples = batch_at(0);
  std::vector<at::Tensor> pictures;
  for (const Sample& sample : samples) pictures.push_back(picture_of(sample.index));
  buffer.insert(samples, part_of(at::stack(pictures), ranks_).contiguous(),
                [](const Pictures&) { return at::Tensor(); });
  const auto changed = buffer.take_changed();
  for (const Slot slot : changed) EXPECT_TRUE(buffer.is_here(slot));
  EXPECT_EQ(ranks_.sum(at::full({1}, std::ssize(changed), at::kLong)).item<std::int64_t>(), kBatch);
  const at::Tensor stored = buffer.stored(changed);
  for (std::size_t i = 0; i < changed.size(); ++i) {
    EXPECT_TRUE(stored[static_cast<std::int64_t>(i)].equal(
        picture_of(buffer.info(changed[i]).index).flatten()));
  }

  ReplayBuffer restored(divided_config("fifo", Storage::raw), kBatch, kSide, kFeatures, 3, at::kCPU,
                        ranks_);
  restored.restore(buffer.save());
  restored.put_stored(changed, stored);
  const Pictures before = buffer.pictures(buffer.live());
  const at::Tensor rows = before.tensor.index_select(0, integers_tensor(before.indices)).clone();
  const Pictures after = restored.pictures(restored.live());
  EXPECT_TRUE(after.tensor.index_select(0, integers_tensor(after.indices)).equal(rows));
  // Not once all ranks have exchanged pictures, which they would then know by other copies.
  if (!ranks_.alone()) {
    EXPECT_THROW(restored.put_stored(changed, stored), std::logic_error);
  }
}

TEST_F(RanksReplayBuffer, ShareTheMemoryOfTheirMachine) {
  if (ranks_.alone()) return;
  constexpr int kLarge = 1024;
  constexpr double kPictureBytes = 3.0 * kLarge * kLarge;
  // Three quarters of the memory for each rank.
  const double samples =
      0.75 * static_cast<double>(available_memory(at::kCPU).host) / kPictureBytes * ranks_.size();
  BufferConfig config = divided_config("fifo", Storage::raw);
  config.capacity = std::to_string(static_cast<std::int64_t>(samples));
  EXPECT_THROW(ReplayBuffer(config, kBatch, kLarge, kFeatures, 3, at::kCPU, ranks_), Error);
}

}  // namespace
}  // namespace riffle
