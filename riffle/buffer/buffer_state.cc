#include "riffle/buffer/buffer_state.h"

#include <algorithm>
#include <utility>

#include <ATen/ATen.h>

#include "riffle/base/error.h"
#include "riffle/base/text.h"

namespace riffle {
namespace {

constexpr const char* kPolicy = "policy.";

// In the order of the tensor "shape".
constexpr std::pair<const char*, std::int64_t BufferShape::*> kShape[] = {
    {"buffer.policy", &BufferShape::policy},
    {"buffer.storage", &BufferShape::storage},
    {"buffer.capacity (samples)", &BufferShape::capacity},
    {"batch", &BufferShape::batch},
    {"picture size", &BufferShape::picture_size},
};

// Left out of a state where it is 1.
constexpr const char* kPicturesASample = "pictures_a_sample";

BufferShape read_shape(const NamedTensors& tensors) {
  const auto values = find_integers(tensors, "shape", std::ssize(kShape));
  BufferShape shape;
  for (std::size_t i = 0; i < values.size(); ++i) shape.*kShape[i].second = values[i];
  if (tensor_or_null(tensors, kPicturesASample) != nullptr) {
    shape.pictures_a_sample = find_integers(tensors, kPicturesASample, 1)[0];
  }
  return shape;
}

std::vector<SlotInfo> read_samples(const NamedTensors& tensors, std::int64_t count) {
  const auto arrivals = find_integers(tensors, "arrivals", count);
  const auto indices = find_integers(tensors, "indices", count);
  const auto clips = find_integers(tensors, "clips", count);
  const auto draws = find_integers(tensors, "draws", count);
  auto labels = find_texts(tensors, "labels", count);
  // Earlier versions did not note them.
  std::vector<std::int64_t> times(labels.size(), 0);
  if (tensor_or_null(tensors, "times") != nullptr) times = find_integers(tensors, "times", count);
  std::vector<std::string> keys(labels.size());
  if (tensor_or_null(tensors, "keys.lengths") != nullptr) keys = find_texts(tensors, "keys", count);
  std::vector<SlotInfo> samples;
  samples.reserve(labels.size());
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (draws[i] < 0) throw Error(cat("saved state: a sample was drawn ", draws[i], " times"));
    samples.push_back({static_cast<std::uint64_t>(arrivals[i]),
                       static_cast<std::uint64_t>(indices[i]), clips[i], draws[i],
                       std::move(labels[i]), times[i], std::move(keys[i])});
  }
  return samples;
}

// The numbers come from a file: slots() may overflow before this.
void require_slots(const BufferState& state) {
  const auto& shape = state.shape;
  const auto slots = std::ssize(state.live) + std::ssize(state.free);
  if (shape.capacity < 0 || shape.capacity > slots || shape.batch != slots - shape.capacity) {
    throw Error(cat("saved state: ", slots, " slots for a capacity of ", shape.capacity,
                    " and a batch of ", shape.batch));
  }
  std::vector<bool> seen(static_cast<std::size_t>(slots), false);
  for (const auto* list : {&state.live, &state.free}) {
    for (const Slot slot : *list) {
      if (slot < 0 || slot >= slots || seen[static_cast<std::size_t>(slot)]) {
        throw Error(cat("saved state: slot ", slot, " is listed twice or is not one of ", slots));
      }
      seen[static_cast<std::size_t>(slot)] = true;
    }
  }
  const auto others = std::ssize(state.live) - std::ssize(state.newest);
  if (others > shape.capacity) {
    throw Error(cat("saved state: ", others, " samples in a buffer of ", shape.capacity));
  }
  const Slot last = state.live.empty() ? -1 : std::ranges::max(state.live);
  if (state.used <= last || state.used > slots) {
    throw Error(cat("saved state: ", state.used, " slots were used, but slot ", last, " of ", slots,
                    " holds a sample"));
  }
}

void require_arrivals(const BufferState& state) {
  std::vector<std::uint64_t> arrivals;
  for (const auto& sample : state.samples) arrivals.push_back(sample.arrival);
  std::ranges::sort(arrivals);
  const auto twice = std::ranges::adjacent_find(arrivals);
  if (twice != arrivals.end()) throw Error(cat("saved state: sample ", *twice, " is held twice"));
  if (!arrivals.empty() && arrivals.back() >= state.arrivals) {
    throw Error(cat("saved state: sample ", arrivals.back(), " is held, but only ", state.arrivals,
                    " entered"));
  }
}

// They are the last that entered, in order.
void require_newest(const BufferState& state) {
  std::vector<std::uint64_t> arrivals(static_cast<std::size_t>(state.shape.slots()),
                                      state.arrivals);
  for (std::size_t i = 0; i < state.live.size(); ++i) {
    arrivals[static_cast<std::size_t>(state.live[i])] = state.samples[i].arrival;
  }
  std::uint64_t next = state.arrivals - state.newest.size();
  for (const Slot slot : state.newest) {
    if (slot < 0 || slot >= state.shape.slots() ||
        arrivals[static_cast<std::size_t>(slot)] != next++) {
      throw Error(cat("saved state: slot ", slot, " is not one of the newest batch"));
    }
  }
}

void require_policy(const BufferState& state) {
  const SavedPolicy saved = state.saved_policy();
  auto held = saved.slots;
  auto live = state.live;
  std::ranges::sort(held);
  std::ranges::sort(live);
  if (held != live) throw Error("saved state: the policy holds other slots than the buffer");
  if (!saved.has_feature.defined()) return;
  const auto* has = saved.has_feature.const_data_ptr<bool>();
  for (const Slot slot : state.free) {
    if (has[slot]) throw Error(cat("saved state: slot ", slot, " has a feature but no sample"));
  }
}

}  // namespace

NamedTensors BufferState::tensors() const {
  NamedTensors tensors;
  const auto add = [&tensors](const char* name, const std::vector<std::int64_t>& values) {
    tensors.emplace_back(name, integers_tensor(values));
  };
  std::vector<std::int64_t> shape_values;
  for (const auto& [name, member] : kShape) shape_values.push_back(shape.*member);
  add("shape", shape_values);
  if (shape.pictures_a_sample != 1) add(kPicturesASample, {shape.pictures_a_sample});
  add("counts", {static_cast<std::int64_t>(arrivals), used});
  add("live", live);
  add("free", free);
  if (!newest.empty()) add("newest", newest);

  std::vector<std::int64_t> sample_arrivals, indices, clips, draws, times;
  std::vector<std::string> labels, keys;
  for (const auto& sample : samples) {
    sample_arrivals.push_back(static_cast<std::int64_t>(sample.arrival));
    indices.push_back(static_cast<std::int64_t>(sample.index));
    clips.push_back(sample.clip);
    draws.push_back(sample.draws);
    labels.push_back(sample.label);
    times.push_back(sample.time);
    keys.push_back(sample.key);
  }
  add("arrivals", sample_arrivals);
  add("indices", indices);
  add("clips", clips);
  add("draws", draws);
  const bool timed = std::ranges::any_of(times, [](std::int64_t time) { return time != 0; });
  if (timed) add("times", times);
  add_texts(tensors, "labels", labels);
  const bool keyed = std::ranges::any_of(keys, [](const auto& key) { return !key.empty(); });
  if (keyed) add_texts(tensors, "keys", keys);
  add_part(tensors, kPolicy, policy);
  return tensors;
}

BufferState BufferState::read(const NamedTensors& tensors) {
  BufferState state;
  state.shape = read_shape(tensors);
  const auto counts = find_integers(tensors, "counts", 2);
  state.arrivals = static_cast<std::uint64_t>(counts[0]);
  state.used = counts[1];
  state.live = find_integers(tensors, "live");
  state.free = find_integers(tensors, "free");
  if (tensor_or_null(tensors, "newest") != nullptr) state.newest = find_integers(tensors, "newest");
  state.samples = read_samples(tensors, std::ssize(state.live));
  state.policy = find_part(tensors, kPolicy);
  require_slots(state);
  require_arrivals(state);
  require_newest(state);
  require_policy(state);
  return state;
}

SavedPolicy BufferState::saved_policy() const {
  return policy_of_number(shape.policy).read(policy, shape.slots());
}

void require_same_shape(const BufferShape& saved, const BufferShape& wanted) {
  for (const auto& [name, member] : kShape) {
    if (saved.*member != wanted.*member) {
      throw Error(cat("the saved buffer has another ", name, ": ", saved.*member, ", not ",
                      wanted.*member));
    }
  }
  if (saved.pictures_a_sample != wanted.pictures_a_sample) {
    throw Error(cat("the saved buffer has ", saved.pictures_a_sample,
                    " pictures of each sample, not ", wanted.pictures_a_sample,
                    ": augment.temporal must be on or off as it was"));
  }
}

}  // namespace riffle
