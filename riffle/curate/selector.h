// The pictures of a stream that are worth keeping, chosen in one pass: at most `keep` of them at
// any time, whatever the length of the stream.
//
// New pictures enter; when there are too many, the pair that is cheapest to merge is found and one
// of the two leaves (the buffer's policy `merge`, docs/minred.md), until enough have left. The one
// that stays stands for both from then on. With `near`, a picture that is as near as that to a kept
// one never enters. The choice is a function of the pictures, their features and their order alone.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "riffle/buffer/nearest_index.h"
#include "riffle/stream/stream.h"
#include "riffle/tensors/named_tensors.h"

namespace riffle {

struct SelectorConfig {
  std::int64_t keep = 0;
  // Cosine distance to a kept picture up to which another is its repeat; below 0: none is.
  double near = -1;
  std::int64_t dim = 0;
  // The most samples that are offered at once.
  std::int64_t batch = 256;
  at::Device device = at::Device(at::kCPU);
};

// A picture that is kept.
struct Kept {
  std::uint64_t index = 0;
  std::int64_t clip = kNoClip;
  std::string label;
  std::string key;
  // When it came, in milliseconds since 1970; 0: unknown, or not of a live source.
  std::int64_t time = 0;
  // Of a frame of a film: when it is shown, in milliseconds since the film's beginning; otherwise
  // -1.
  std::int64_t shown_at = -1;
  // How many pictures of the stream it stands for, itself among them.
  std::int64_t count = 1;
  // Where its picture was written; empty: nowhere.
  std::string file;
};

// A picture that was not kept, or is no longer, and the one that stood for it at that time.
struct Repeat {
  std::uint64_t index = 0;
  std::string key;
  std::uint64_t of = 0;
  // How many that one stood for then, with this one.
  std::int64_t count = 0;
};

class Selector {
 public:
  explicit Selector(const SelectorConfig& config);

  struct Change {
    // Slots that hold a sample of this batch now, and the sample's place in the batch.
    std::vector<std::pair<std::int64_t, std::size_t>> entered;
    // Slots whose sample, of an earlier batch, left.
    std::vector<std::int64_t> left;
    // In order.
    std::vector<Repeat> repeats;
  };

  // Offers the next samples of the stream; their pictures are not looked at. `features`:
  // [samples, dim], on any device. Throws Error for features that are not finite or all zero.
  Change offer(std::span<const Sample> samples, const at::Tensor& features);

  // Gives kept pictures other features, as a network does that has learned since. Requires pictures
  // in all of the slots. Throws Error as offer() does.
  void refresh(std::span<const std::int64_t> slots, const at::Tensor& features);

  // Slots that hold a picture, in order of arrival.
  std::vector<std::int64_t> slots() const;
  const Kept& kept(std::int64_t slot) const { return kept_[static_cast<std::size_t>(slot)]; }
  void set_file(std::int64_t slot, std::string file) {
    kept_[static_cast<std::size_t>(slot)].file = std::move(file);
  }
  std::int64_t size() const { return index_->size(); }
  // Slots are numbered from 0; there are keep and batch.
  std::int64_t slot_count() const { return std::ssize(kept_); }
  bool holds(std::int64_t slot) const { return index_->contains(slot); }
  // Returns the cosine distance to the nearest other one, by slot; 2 where there is none.
  std::vector<double> nearest();

  // Returns the exact state. restore() throws Error if it is not of a selector like this.
  NamedTensors save();
  void restore(const NamedTensors& state);

 private:
  // What a sample of a batch is: new, or a repeat of a kept picture or of one before it in the
  // batch.
  struct Origin {
    bool is_new = true;
    std::int64_t slot = -1;
    std::size_t place = 0;
  };
  // The nearest kept picture, exact if it is at most `near` away.
  struct Near {
    std::int64_t slot = -1;
    double distance = 2;
  };
  std::vector<Near> nearest_held(const at::Tensor& rows) const;
  std::vector<Origin> find_repeats(const at::Tensor& features) const;
  std::vector<std::int64_t> enter(std::span<const Sample> samples, const at::Tensor& features,
                                  std::span<const Origin> origins);
  void count_repeats(std::span<const Sample> samples, std::span<const Origin> origins,
                     std::span<const std::int64_t> slots, Change& change);
  void merge_down(Change& change);

  SelectorConfig config_;
  std::unique_ptr<NearestIndex> index_;
  std::vector<Kept> kept_;          // by slot
  std::vector<std::int64_t> free_;  // the next one to be used is the last
  std::int64_t used_ = 0;           // no slot from here on holds a picture
};

}  // namespace riffle
