// The little of the stream that is kept: a slab of pictures, and a policy that decides who leaves.
//
// Bounded: memory for `capacity` samples and one arriving batch is taken at construction and never grows. Used by one
// thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "riffle/base/random.h"
#include "riffle/buffer/buffer_config.h"
#include "riffle/buffer/policy.h"
#include "riffle/stream/stream.h"

namespace riffle {

// What is known of the sample in a slot, besides its picture.
struct SlotInfo {
  std::uint64_t arrival = 0;  // how many samples entered the buffer before it
  std::uint64_t index = 0;    // of the stream
  std::int64_t clip = kNoClip;
  std::int64_t draws = 0;
  std::string label;
};

class ReplayBuffer {
 public:
  // `batch`: the largest number of samples in one insert. `picture_size`: side of the stored pictures in px.
  // `feature_dim`: width of the features that insert and track will bring (policies that use none ignore it).
  ReplayBuffer(const BufferConfig& config, std::int64_t batch, int picture_size,
               std::int64_t feature_dim, std::uint64_t seed);
  ~ReplayBuffer();

  // Takes a batch from the stream; whoever is too many leaves by the policy. Pictures must be picture_size squared.
  // `features` ([batch, dim], unit length) may be undefined.
  void insert(std::span<const Sample> batch, const at::Tensor& features = {});

  // n distinct slots, uniformly at random (with policy none: the n newest, in order). n is at most size().
  std::vector<Slot> sample(std::int64_t n, Random& random);

  // The features that the network gave for these slots in the update just made.
  void track(std::span<const Slot> slots, const at::Tensor& features);

  std::int64_t size() const;
  std::int64_t capacity() const;
  bool full() const { return size() == capacity(); }

  // The slab, [slots, size, size, 3] uint8, and the slots that hold a sample now.
  const at::Tensor& pictures() const;
  const std::vector<Slot>& live() const;
  const SlotInfo& info(Slot slot) const;
  std::int64_t distinct_clips() const;

  // Exact state: a restored buffer goes on as this one would.
  std::vector<std::pair<std::string, at::Tensor>> save() const;
  void restore(const std::vector<std::pair<std::string, at::Tensor>>& state);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace riffle
