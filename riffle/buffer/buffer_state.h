// The saved state of a replay buffer, pictures apart. Nobody else knows the names of its tensors:
// whoever reads a saved buffer reads it here, where it is checked once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "riffle/buffer/policy.h"
#include "riffle/stream/stream.h"
#include "riffle/tensors/named_tensors.h"

namespace riffle {

// What is known of the sample in a slot, besides its picture.
struct SlotInfo {
  // The number of samples that entered the buffer before this one.
  std::uint64_t arrival = 0;
  // Of the stream.
  std::uint64_t index = 0;
  std::int64_t clip = kNoClip;
  std::int64_t draws = 0;
  std::string label;
  // Sample::time. Nothing is decided by it.
  std::int64_t time = 0;
  // Sample::key; empty if it is longer than kMostKeyBytes.
  std::string key = {};
};

constexpr std::size_t kMostKeyBytes = 256;

// State belongs to the configuration it was saved under: what must be the same.
struct BufferShape {
  std::int64_t policy = 0;  // number_of_policy()
  std::int64_t storage = 0;
  std::int64_t capacity = 0;  // samples
  std::int64_t batch = 0;
  std::int64_t picture_size = 0;  // px
  std::int64_t pictures_a_sample = 1;

  std::int64_t slots() const { return capacity + batch; }
};

struct BufferState {
  BufferShape shape;
  // The number of samples that ever entered.
  std::uint64_t arrivals = 0;
  // Slots from this one on never held a sample.
  std::int64_t used = 0;
  std::vector<Slot> live;
  // By place in `live`.
  std::vector<SlotInfo> samples = {};
  // The next one to be used is the last.
  std::vector<Slot> free;
  // The newest batch in order of arrival, if it is held beyond the capacity
  // (ReplayBuffer::hold_newest).
  std::vector<Slot> newest = {};
  // Policy::save().
  NamedTensors policy;

  NamedTensors tensors() const;

  // Returns the state that tensors() gave. Throws Error, naming the tensor or the slot, if one is
  // missing or of another type or length, if a slot is out of range or listed twice, if there are
  // more samples than the capacity beside the newest batch, if that is not of the last samples that
  // entered, if the policy holds other slots than the buffer, or if a slot
  // without a sample has a feature.
  static BufferState read(const NamedTensors& tensors);

  // What the policy knows of the samples held.
  SavedPolicy saved_policy() const;
};

// Throws Error, naming what differs, unless both are the same.
void require_same_shape(const BufferShape& saved, const BufferShape& wanted);

}  // namespace riffle
