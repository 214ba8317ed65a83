// What a run's replay buffer held at a checkpoint, to look at and to hand on; the run may go on
// meanwhile.
//
// All but pictures is read at once; pictures are read when asked for and checked. Not thread-safe.
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
  // Cosine distance to the nearest other sample of the buffer; NaN: not known.
  double nearest = std::numeric_limits<double>::quiet_NaN();
};

class SavedBuffer {
 public:
  // The newest checkpoint with a buffer, or the one named. Throws Error when the run has none, or
  // it is damaged.
  explicit SavedBuffer(const RunFolder& folder, const std::string& checkpoint = "");

  const std::string& checkpoint() const { return checkpoint_; }
  std::int64_t samples_seen() const { return samples_seen_; }
  const Config& config() const { return config_; }
  // Oldest first.
  const std::vector<KeptSample>& samples() const { return samples_; }

  // Of samples()[i] for each i given.
  std::vector<Picture> pictures(std::span<const std::size_t> which);

  // Fills in `nearest` of all samples that have a feature: those that minred tracked; with the
  // other policies the encoder's, which has to see every picture first. Grows with the square of
  // the buffer's size, on `device`. Shows progress.
  void measure_nearest(at::Device device);

 private:
  at::Tensor encoded(at::Device device);

  RunFolder folder_;
  Config config_;
  std::string checkpoint_;
  std::int64_t samples_seen_ = 0;
  std::vector<KeptSample> samples_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<PictureLog> log_;
  at::Tensor features_;  // [slots, dim], as minred tracked them; undefined without
};

// For rows of any length: one less the largest cosine to another row. A row of zeros has no
// neighbour and is none: NaN. [n, dim] to n values. Shows progress.
std::vector<double> nearest_distances(const at::Tensor& rows);

}  // namespace riffle
