// How fast the minimum-redundancy buffer's index is, beside the way of the paper's authors, over
// one history.
//
// The history is what training does to an index: every stream batch brings K updates that move the
// features of b random rows each, then b new rows, frames of clips that resemble one another, and b
// rows leave. Features come from a map that drifts from update to update, with a little noise for
// each draw. The authors' way on the same device, of the same rows: the full matrix of similarities
// for every stream batch, and one scan of it for every removal.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <ATen/core/Tensor.h>

#include "riffle/buffer/buffer_config.h"
#include "riffle/buffer/nearest_index.h"

namespace riffle {

struct MinredBenchConfig {
  at::Device device = at::Device(at::kCPU);
  std::int64_t capacity = 4096;
  std::int64_t dim = 256;
  std::int64_t batch = 64;
  std::int64_t updates = 5;
  FeatureType type = FeatureType::float32;
  std::int64_t neighbours = 8;
  // Merging by weight instead of MinRed; the authors' way is then left out.
  std::optional<MergeRule> merge;
  std::int64_t warm_batches = 10;
  std::int64_t batches = 20;         // measured
  std::int64_t authors_batches = 3;  // of those, also done the authors' way; 0: none
  std::uint64_t seed = 0;
};

struct MinredBenchResult {
  double per_stream_batch_ms =
      0;                   // all that the index adds: K tracking steps, arrivals, removals; median
  double per_step_ms = 0;  // tracking alone, per update
  double take_ms = 0;      // removals alone, with the products they need
  double authors_per_stream_batch_ms = 0;  // 0 when skipped
  double authors_per_step_ms = 0;
  double ratio = 0;              // authors' time per stream batch over ours
  bool same_evictions = false;   // meaningful when authors_skipped is empty
  std::string authors_skipped;   // why, when the authors' way was not measured
  std::uint64_t peak_bytes = 0;  // of the index: on a GPU as measured, on the CPU as predicted
  std::uint64_t authors_peak_bytes = 0;
  double rescanned_per_batch = 0;
  NearestIndexStats stats;
};

// Throws Error when the numbers make no sense or the device is not there.
MinredBenchResult bench_minred(const MinredBenchConfig& config);

}  // namespace riffle
