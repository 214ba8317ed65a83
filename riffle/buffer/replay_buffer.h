// The little of the stream that is kept: a store of pictures, and a policy that decides who leaves.
//
//   buffer.insert(batch);
//   const Draw draw = buffer.sample(256, random);
//   const Pictures pictures = buffer.pictures(draw.slots);
//   ... views of pictures.tensor at pictures.indices, forward, backward ...
//   buffer.track(draw, features);
//
// Bounded: memory for `capacity` samples and one arriving batch is taken at construction and does
// not grow. Used by one thread, or under one lock: samples may be inserted between sample() and
// track().
//
// Several ranks (riffle/dist) share one buffer: all make the same calls with the same samples,
// slots and features, and decide alike, while each holds its share of the pictures
// (divided_store.h). Only pictures are a rank's own: insert() takes those of its part of the batch,
// pictures() returns those of its part of the slots.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include "riffle/base/random.h"
#include "riffle/buffer/buffer_config.h"
#include "riffle/buffer/buffer_state.h"
#include "riffle/buffer/policy.h"
#include "riffle/buffer/store.h"
#include "riffle/dist/ranks.h"
#include "riffle/stream/stream.h"

namespace riffle {

// Samples drawn for one update. A slot may hold another sample by the time their features are
// known; the arrival numbers tell.
struct Draw {
  std::vector<Slot> slots;
  std::vector<std::uint64_t> arrivals;
};

struct BufferStats {
  std::int64_t size = 0;
  std::int64_t capacity = 0;
  double mean_age = 0;  // in samples: how many entered after it
  std::int64_t max_age = 0;
  double mean_draws = 0;
  double tracked_share = 0;                       // of the samples held, those with a feature
  std::int64_t distinct_clips = 0;                // samples without a clip count for none
  std::map<std::string, std::int64_t> evictions;  // so far, by the policy's reason
  std::vector<double> nearest;                    // see PolicyStats
};

class ReplayBuffer {
 public:
  // `batch`: the largest number of samples in one insert. `picture_size`: side of the stored
  // pictures in px. `feature_dim`: width of the features that insert and track will bring (policies
  // that use none ignore it). `device`: where they come from. Throws Error for a configuration that
  // cannot work or does not fit into memory. `ranks` must outlive this.
  ReplayBuffer(const BufferConfig& config, std::int64_t batch, int picture_size,
               std::int64_t feature_dim, std::uint64_t seed, at::Device device = at::kCPU,
               Ranks& ranks = one_rank());

  // Makes whoever has to leave do so only when the next batch is inserted, so that all of the
  // newest batch is held until then, beyond the capacity if need be. Requires that nothing was
  // inserted.
  void hold_newest();
  ~ReplayBuffer();

  // Inserts a batch from the stream; the policy says who leaves if that is more than the capacity.
  // Requires pictures of picture_size squared. `features` ([batch, dim], unit length) may be
  // undefined. A call that throws changes nothing that can be seen, but that with hold_newest()
  // those who had to leave have left.
  void insert(std::span<const Sample> batch, const at::Tensor& features = {});
  // The same with the samples' pictures as one tensor ([batch, picture_size, picture_size, 3]
  // uint8, a rank's part of the batch alone; best in the memory that picture_device() names), and
  // with features computed from the pictures where they are kept. `partners`, for a buffer of
  // pairs: by sample, whose picture of this batch is kept beside its own; empty: its own.
  using FeaturesOf = std::function<at::Tensor(const Pictures&)>;
  void insert(std::span<const Sample> batch, const at::Tensor& pictures,
              const FeaturesOf& features_of, std::span<const std::int64_t> partners = {});

  // Returns n distinct samples: uniformly at random or by their weights, as buffer.draw says; with
  // policy none the n newest, in order. Requires n <= size(). O(n), and by weights O(n log slots)
  // and O(slots) after an insert.
  Draw sample(std::int64_t n, Random& random);
  // Returns n distinct samples of which the first `fresh` are of the newest batch and the others
  // are not. Requires hold_newest(), at least `fresh` samples in the newest batch and as many as
  // the others beside it.
  Draw sample_with_fresh(std::int64_t n, std::int64_t fresh, Random& random);

  // Hands the features that the network gave for a draw to the policy. Samples that left the buffer
  // since are skipped.
  void track(const Draw& draw, const at::Tensor& features);

  // Returns pictures, and in a buffer of pairs their partners. With raw storage this copies
  // nothing: the tensor is the store's own and changes with the next insert.
  Pictures pictures(std::span<const Slot> slots) const;

  std::int64_t size() const;
  std::int64_t capacity() const;
  bool full() const { return size() >= capacity(); }
  // The most samples in one insert.
  std::int64_t batch() const;
  // Side of the stored pictures, px.
  int picture_size() const;
  at::Device picture_device() const;
  // Slots are numbered from 0; there are capacity() + batch().
  std::int64_t slots() const;
  bool holds(Slot slot) const;
  // Returns whether this rank has the picture.
  bool is_here(Slot slot) const;

  // Returns the slots that hold a sample now, in no particular order.
  const std::vector<Slot>& live() const;
  const SlotInfo& info(Slot slot) const;

  std::int64_t distinct_clips() const;
  // O(size); with `nearest` also what the policy needs for the distances.
  BufferStats stats(bool nearest = false) const;
  std::map<std::string, std::int64_t> label_counts() const;

  // Exact state, copied: a restored buffer continues as this one would. It is in two parts, because
  // pictures are large and never change in their slot: save() and restore() are for all but the
  // pictures, on the CPU; stored() and put_stored() for those of some slots, on any device (stored:
  // on picture_device()). They take slots whose pictures are here. After restore() the pictures of
  // all live slots must be put. Both throw
  // Error if the state is damaged or belongs to another configuration; the buffer must not be used
  // after that.
  NamedTensors save() const;
  void restore(const NamedTensors& state);
  // Of what is kept in one slot: a picture, or a pair.
  std::int64_t stored_bytes() const;
  at::Tensor stored(std::span<const Slot> slots) const;
  void put_stored(std::span<const Slot> slots, const at::Tensor& stored);

  // Returns the live slots whose pictures are here and that got another sample since the last call,
  // or since the beginning.
  std::vector<Slot> take_changed();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace riffle
