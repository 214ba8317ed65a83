#include "riffle/buffer/buffer_config.h"

#include <cmath>

#include "riffle/base/error.h"
#include "riffle/buffer/memory_plan.h"
#include "riffle/buffer/nearest_index.h"
#include "riffle/buffer/policy.h"

namespace riffle {

void BufferConfig::describe(Fields& fields) {
  fields.add("buffer.policy", policy, policy_names(),
             "who leaves a full buffer; none: each stream batch is used once");
  fields.add("buffer.capacity", capacity,
             "samples kept (65536, 64k), or memory for the whole buffer (8GiB, 500MB)");
  fields.add(
      "buffer.storage", storage, {{"raw", Storage::raw}, {"jpeg", Storage::jpeg}},
      "how pictures are kept; jpeg takes about an eighth of the memory and decodes at each draw");
  fields.add(
      "buffer.memory", memory,
      {{"best", BufferMemory::best},
       {"host", BufferMemory::host},
       {"gpu", BufferMemory::gpu},
       {"pinned", BufferMemory::host}},
      "where pictures are kept; best: the GPU's when it trains there and half of what it has left "
      "is enough, else host; pinned: what earlier versions called host with a GPU");
  fields.add("buffer.jpeg_quality", jpeg_quality,
             "highest JPEG quality, 1 to 100; lowered for a picture that would take too much");
  fields.add("buffer.features", features,
             {{"draw", FeatureTime::draw}, {"arrival", FeatureTime::arrival}},
             "merge, minred: when a sample gets its first feature; draw, as in the paper: when it "
             "is first drawn; arrival: at once, so that what is redundant leaves before it is "
             "trained on");
  fields.add("buffer.merge_exponent", merge_exponent,
             "merge: exponent of the weights in what a pair costs: 0, 0.25, 0.5, 0.75 or 1");
  fields.add("buffer.half_life", half_life,
             "merge: samples after which a sample counts half as much; 0: all of the past counts "
             "the same");
  fields.add("buffer.stays", stays, {{"heavier", StayRule::heavier}, {"drawn", StayRule::drawn}},
             "merge: who of a merged pair stays: by chance in proportion to the weights, or the "
             "heavier");
  fields.add("buffer.weight_limit", weight_limit,
             "merge: a sample's weight grows up to this, however many are merged into it; 0: no "
             "limit");
  fields.add("buffer.merge_reach", merge_reach,
             "merge: the distance at which two samples have nothing in common: no distance counts "
             "for more, and a sample takes over all the weight of an equal one, less of one "
             "farther away, and nothing from here on; 0: none");
  fields.add("buffer.draw", draw, {{"uniform", DrawRule::uniform}, {"weight", DrawRule::weight}},
             "how likely a sample is to be drawn: all the same, or by its weight (merge)");
  fields.add("buffer.draw_exponent", draw_exponent,
             "draw=weight: exponent of the weights, 0 to 1; 1 brings back the stream's own shares, "
             "with weight_limit=0 and merge_reach=0");
  fields.add("buffer.tie", tie, {{"older", TieRule::older}, {"newer", TieRule::newer}},
             "minred: who of the two most similar samples leaves; merge with stays=heavier: of "
             "equal weights");
  fields.add("buffer.momentum", momentum,
             "merge, minred: share of the old feature when a sample is drawn again, in [0, 1)");
  fields.add("buffer.draw_limit", draw_limit,
             "merge, minred: a sample drawn more often than this leaves first; 0: no limit");
  fields.add("buffer.feature_type", feature_type,
             {{"float32", FeatureType::float32},
              {"float16", FeatureType::float16},
              {"bfloat16", FeatureType::bfloat16}},
             "merge, minred: how features are kept");
}

void BufferConfig::validate() const {
  parse_capacity(capacity);
  if (!(momentum >= 0 && momentum < 1)) {
    throw Error(cat("buffer.momentum must be in [0, 1), but is ", momentum));
  }
  const double quarters = 4 * merge_exponent;
  if (!(quarters >= 0 && quarters <= 4 && quarters == std::floor(quarters))) {
    throw Error(
        cat("buffer.merge_exponent must be 0, 0.25, 0.5, 0.75 or 1, but is ", merge_exponent));
  }
  if (half_life < 0) {
    throw Error(
        cat("buffer.half_life must be 0 (weights do not fade) or more, but is ", half_life));
  }
  if (merge_reach != 0 && !(merge_reach >= MergeRule::kLeastReach && merge_reach <= 2)) {
    throw Error(cat("buffer.merge_reach must be 0 (none) or from ", MergeRule::kLeastReach,
                    " to 2, a cosine distance, but is ", merge_reach));
  }
  if (!(weight_limit >= 0)) {
    throw Error(cat("buffer.weight_limit must be 0 (no limit) or more, but is ", weight_limit));
  }
  if (!(draw_exponent >= 0 && draw_exponent <= 1)) {
    throw Error(cat("buffer.draw_exponent must be in [0, 1], but is ", draw_exponent));
  }
  if (draw_limit < 0) {
    throw Error(cat("buffer.draw_limit must be 0 (no limit) or more, but is ", draw_limit));
  }
  if (jpeg_quality < 1 || jpeg_quality > 100) {
    throw Error(cat("buffer.jpeg_quality must be 1 to 100, but is ", jpeg_quality));
  }
  const bool asks_for_gpu = memory == BufferMemory::gpu;
  if (storage == Storage::jpeg && asks_for_gpu) {
    throw Error("buffer.storage=jpeg needs buffer.memory=host: pictures are decoded by the CPU");
  }
#ifndef RIFFLE_CUDA
  if (asks_for_gpu) {
    throw Error(
        "this riffle was built without CUDA: buffer.memory must be host or best (gpu needs a "
        "LibTorch with CUDA)");
  }
#endif
}

}  // namespace riffle
