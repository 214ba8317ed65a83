// What a run's replay buffer held at a checkpoint, for pages and exports. The run may continue
// meanwhile.
//
// Everything but pictures is read and checked by the constructor; pictures are when asked for. Not
// thread-safe.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "riffle/buffer/replay_buffer.h"
#include "riffle/image/picture.h"
#include "riffle/run/checkpoint.h"

namespace riffle {

struct KeptSample {
  SlotInfo info;
  Slot slot = 0;
  PicturePlace place;
  // How many samples of the stream it stands for: 1 for a policy that does not weigh them.
  double weight = 1;
  // Cosine distance to the nearest other sample of the buffer; NaN: unknown.
  double nearest = std::numeric_limits<double>::quiet_NaN();
};

class SavedBuffer {
 public:
  // Opens the checkpoint named; default: the newest with a buffer. Throws Error if there is none,
  // DamagedCheckpoint if it is damaged, and as require_same_network() does.
  explicit SavedBuffer(const RunFolder& folder, const std::string& checkpoint = "");

  const std::string& checkpoint() const { return checkpoint_; }
  std::int64_t samples_seen() const { return samples_seen_; }
  const Config& config() const { return config_; }
  // Oldest first.
  const std::vector<KeptSample>& samples() const { return samples_; }

  // Returns the pictures of samples()[i] for each i in `which`. Throws Error if one is damaged.
  std::vector<Picture> pictures(std::span<const std::size_t> which);

  // Returns the features that the policy kept, a row for each of samples(), zeros for a sample
  // without one; undefined if it keeps none.
  at::Tensor features() const;

  // Returns the encoder's features of samples()[i] for each i in `which`, a row each; looks at
  // every picture. Throws Error if one is damaged. Shows progress.
  at::Tensor encoded(std::span<const std::size_t> which, at::Device device);

  // Fills in `nearest` of all samples that have a feature: the policy's, or, for a policy that
  // keeps none, the encoder's, which has to see every picture first. Cost grows with the square of
  // the buffer's size, on `device`. Shows progress.
  void measure_nearest(at::Device device);

 private:
  RunFolder folder_;
  Config config_;
  std::string checkpoint_;
  std::int64_t samples_seen_ = 0;
  std::vector<KeptSample> samples_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<PictureLog> log_;
  // The policy's, [slots, dim], zeros for a sample without one; undefined: it keeps none.
  at::Tensor features_;
};

struct ArrivedPicture {
  // Samples that entered the buffer before it.
  std::uint64_t arrival = 0;
  Picture picture;
};

// Returns the pictures that entered a run's buffer last, at most `count`, newest first, as far as
// they are on disk; needs no checkpoint. The run may be writing.
std::vector<ArrivedPicture> newest_arrivals(const RunFolder& folder, std::size_t count);

// Returns, for each row of [n, dim], one minus its largest cosine to another row. Rows may be of
// any length; a row of zeros has no neighbour and is none: NaN. Shows progress.
std::vector<double> nearest_distances(const at::Tensor& rows);

}  // namespace riffle
