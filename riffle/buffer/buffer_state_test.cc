#include "riffle/buffer/buffer_state.h"

#include <cmath>
#include <functional>
#include <limits>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/base/error.h"
#include "riffle/base/text.h"

namespace riffle {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

// A fifo buffer of 4 samples and a batch of 2, of which slots 5, 0 and 2 hold samples.
BufferState small_state() {
  const auto slots = [](std::vector<Slot> values) { return integers_tensor(values); };
  return {.shape = {number_of_policy("fifo"), 0, 4, 2, 8},
          .arrivals = 9,
          .used = 6,
          .live = {5, 0, 2},
          .samples = {{8, 80, 1, 0, "cat"},
                      {6, 60, kNoClip, 3, ""},
                      {7, 70, 1, 2, "dog", 5, "dogs/7.jpg"}},
          .free = {1, 4, 3},
          .policy = {{"queue", slots({0, 2, 5})}, {"evicted", slots({6})}}};
}

void expect_refused(const std::function<void(BufferState&)>& forge, const std::string& words) {
  BufferState state = small_state();
  forge(state);
  EXPECT_THAT([&] { BufferState::read(state.tensors()); }, ThrowsMessage<Error>(HasSubstr(words)));
}

TEST(BufferState, IsReadAsItWasWritten) {
  const BufferState state = BufferState::read(small_state().tensors());
  EXPECT_EQ(state.shape.slots(), 6);
  EXPECT_EQ(state.arrivals, 9u);
  EXPECT_EQ(state.used, 6);
  EXPECT_THAT(state.live, ElementsAre(5, 0, 2));
  EXPECT_THAT(state.free, ElementsAre(1, 4, 3));
  ASSERT_EQ(state.samples.size(), 3u);
  EXPECT_EQ(state.samples[0].arrival, 8u);
  EXPECT_EQ(state.samples[0].label, "cat");
  EXPECT_EQ(state.samples[1].clip, kNoClip);
  EXPECT_EQ(state.samples[2].index, 70u);
  EXPECT_EQ(state.samples[2].draws, 2);
  EXPECT_EQ(state.samples[2].time, 5);
  EXPECT_EQ(state.samples[1].key, "");
  EXPECT_EQ(state.samples[2].key, "dogs/7.jpg");
  EXPECT_THAT(state.saved_policy().slots, ElementsAre(0, 2, 5));
  EXPECT_FALSE(state.saved_policy().features.defined());
}

TEST(BufferState, RefusesSlotsThatAreOutOfRangeOrRepeated) {
  constexpr Slot kLargest = std::numeric_limits<Slot>::max();
  for (const Slot slot : {Slot{6}, Slot{-1}, Slot{1} << 40, kLargest, -kLargest - 1, Slot{0}}) {
    expect_refused([&](BufferState& state) { state.live[0] = slot; }, cat("slot ", slot, " "));
    expect_refused([&](BufferState& state) { state.free[0] = slot; }, cat("slot ", slot, " "));
  }
}

TEST(BufferState, TheNewestBatchMayBeBeyondTheCapacity) {
  BufferState state = small_state();
  state.shape = {1, 0, 2, 4, 8};
  state.newest = {2, 5};  // arrivals 7 and 8 of 9
  EXPECT_THAT(BufferState::read(state.tensors()).newest, ElementsAre(2, 5));
  for (const std::vector<Slot>& forged :
       {std::vector<Slot>{5, 2}, {2, 2}, {0, 2}, {1, 5}, {-1, 5}, {2, 6}, {5, 5, 5, 5}}) {
    expect_refused(
        [&](BufferState& bad) {
          bad.shape = {1, 0, 2, 4, 8};
          bad.newest = forged;
        },
        "newest batch");
  }
}

TEST(BufferState, RefusesNumbersThatContradictEachOther) {
  constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
  expect_refused([](BufferState& state) { state.samples.pop_back(); }, "'arrivals' has 2 values");
  expect_refused([](BufferState& state) { state.free.push_back(6); }, "7 slots for a capacity");
  for (const std::int64_t capacity : {kLargest, std::int64_t{-1}, std::int64_t{5}}) {
    expect_refused([&](BufferState& state) { state.shape.capacity = capacity; },
                   cat("6 slots for a capacity of ", capacity));
  }
  expect_refused([](BufferState& state) { state.shape = {1, 0, 2, 4, 8}; }, "3 samples in a");
  for (const std::int64_t used : {std::int64_t{5}, std::int64_t{7}, kLargest, std::int64_t{-1}}) {
    expect_refused([&](BufferState& state) { state.used = used; }, cat(used, " slots were used"));
  }
  expect_refused([](BufferState& state) { state.samples[0].arrival = 6; },
                 "sample 6 is held twice");
  expect_refused([](BufferState& state) { state.arrivals = 8; }, "only 8 entered");
  expect_refused([](BufferState& state) { state.samples[0].draws = -1; }, "drawn -1 times");
}

TEST(BufferState, RefusesAPolicyThatHoldsOtherSlots) {
  const std::vector<std::vector<Slot>> queues = {{},        {0, 2},       {0, 2, 3},
                                                 {0, 2, 2}, {0, 2, 5, 5}, {0, 2, Slot{1} << 40}};
  for (const auto& queue : queues) {
    expect_refused([&](BufferState& state) { state.policy[0].second = integers_tensor(queue); },
                   "the policy holds other slots");
  }
  expect_refused([](BufferState& state) { state.policy.clear(); }, "'queue' is missing");
  expect_refused([](BufferState& state) { state.shape.policy = 99; }, "policy 99 is unknown");
  expect_refused([](BufferState& state) { state.shape.policy = -1; }, "policy -1 is unknown");
}

// Makes it a MinRed buffer with this many rows of features; `changed` is not 0 where there is one.
void add_features(BufferState& state, std::int64_t rows, const std::vector<std::int64_t>& changed) {
  state.shape.policy = number_of_policy("minred");
  state.policy = {{"slots", integers_tensor(std::vector<Slot>{0, 2, 5})},
                  {"index.rows", at::ones({rows, 3})},
                  {"index.changed", integers_tensor(changed)}};
}

TEST(BufferState, RefusesFeaturesOfSlotsWithoutASample) {
  for (std::int64_t slot : {1, 3, 4}) {
    std::vector<std::int64_t> changed = {3, 0, 1, 0, 0, 2};
    changed[static_cast<std::size_t>(slot)] = 4;
    expect_refused([&](BufferState& state) { add_features(state, 6, changed); },
                   cat("slot ", slot, " has a feature but no sample"));
  }
}

TEST(BufferState, RefusesFeaturesAndWeightsOfAnotherNumberOfSlots) {
  const std::vector<std::int64_t> changed = {3, 0, 1, 0, 0, 0};
  expect_refused([&](BufferState& state) { add_features(state, 5, changed); }, "rows [5, 3]");
  expect_refused(
      [](BufferState& state) {
        add_features(state, 6, {3, 0, 1, 0, 0});
      },
      "'changed' has 5 values");
  BufferState state = small_state();
  add_features(state, 6, changed);
  EXPECT_EQ(BufferState::read(state.tensors()).saved_policy().features.size(0), 6);
  EXPECT_TRUE(state.saved_policy().weights.empty());

  state.policy.emplace_back("index.weights", at::full({6}, 2, at::kDouble));
  EXPECT_THAT(state.saved_policy().weights, ElementsAre(2, 2, 2, 2, 2, 2));
  for (const at::Tensor& weights :
       {at::ones({5}, at::kDouble), at::zeros({6}, at::kDouble),
        at::full({6}, INFINITY, at::kDouble), at::ones({6}, at::kLong)}) {
    state.policy.back().second = weights;
    EXPECT_THAT([&] { BufferState::read(state.tensors()); },
                ThrowsMessage<Error>(HasSubstr("'weights'")));
  }
}

}  // namespace
}  // namespace riffle
