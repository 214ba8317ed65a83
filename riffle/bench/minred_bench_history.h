// A history of features as training makes them, for benchmarks: who they belong to and how they
// move.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "riffle/base/random.h"

namespace riffle {

// Every sample has a place in a small latent space; frames of a clip are near one another there.
// The feature of a sample is a smooth function of its place which turns slowly from update to
// update. Used by one thread.
class MinredBenchHistory {
 public:
  MinredBenchHistory(std::int64_t slots, std::int64_t dim, at::Device device, std::uint64_t seed);

  // New samples for these slots: the next frames of the stream.
  void arrive(std::span<const std::int64_t> slots, std::int64_t frames_per_clip);
  // Features of the samples in these slots as the network sees them now: [slots, dim] float32 on
  // the device.
  at::Tensor features(std::span<const std::int64_t> slots);
  // The network moved on by one update.
  void update() { ++updates_; }

 private:
  std::int64_t dim_;
  at::Device device_;
  Random random_;
  std::vector<float> places_;  // [slots, kLatent]
  std::vector<float> clip_;    // where the clip is now
  std::int64_t frames_ = 0;
  std::int64_t updates_ = 0;
  at::Tensor map_[2];  // [kLatent, dim]
};

}  // namespace riffle
