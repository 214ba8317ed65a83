// What the replay buffer keeps, where, and how it decides who leaves.
#pragma once

#include <cstdint>
#include <string>

#include "riffle/base/fields.h"

namespace riffle {

enum class FeatureTime { draw, arrival };  // when a sample gets its first feature
enum class TieRule { older, newer };       // who of the most redundant pair leaves
enum class DrawRule { uniform, weight };
enum class StayRule { heavier, drawn };  // who of a merged pair stays
enum class FeatureType { float32, float16, bfloat16 };
enum class Storage { raw, jpeg };
enum class BufferMemory { best, host, gpu };  // best: see choose_memory (memory_plan.h)

struct BufferConfig {
  std::string policy = "merge";    // a name of policy.cc; why: docs/results/hostile.md
  std::string capacity = "65536";  // samples, or bytes for the whole buffer: "8GiB", "500MB"
  Storage storage = Storage::raw;
  BufferMemory memory = BufferMemory::best;  // for pictures; features stay with the network
  std::int64_t jpeg_quality = 85;            // at most; see jpeg_store.h
  // How likely a sample is to be drawn: all the same, or by the weight^draw_exponent that its
  // policy gives it.
  DrawRule draw = DrawRule::uniform;
  double draw_exponent = 0.5;
  // For policies with features, merge and minred. The learner reads `features`: it brings them to
  // insert() or does not.
  FeatureTime features = FeatureTime::arrival;  // why: docs/results/studies.md
  TieRule tie = TieRule::older;
  double momentum = 0.5;        // share of the old feature when a sample is drawn again
  std::int64_t draw_limit = 0;  // a sample drawn more often leaves first; 0: no limit
  FeatureType feature_type = FeatureType::float16;  // why: docs/results/minred.md
  // For merge.
  double merge_exponent = 1;   // of the weights in the cost of a pair: 0, 0.25, 0.5, 0.75 or 1
  std::int64_t half_life = 0;  // of weights, in samples; 0: they do not fade
  StayRule stays = StayRule::drawn;
  // Why these two: docs/results/hostile.md.
  double weight_limit = 16;  // that weights grow to; 0: none
  double merge_reach = 0.5;  // distance at which two samples have nothing in common; 0: none

  // Whether each sample has two pictures, its own and its partner's. Not a key: augment.temporal
  // says so (LearnerConfig::buffer_config).
  bool pairs = false;

  std::int64_t pictures_a_sample() const { return pairs ? 2 : 1; }
  bool is_none() const { return policy == "none"; }  // each stream batch is used once

  void describe(Fields& fields);
  // Throws Error naming the key whose value makes no sense, or that this build cannot serve.
  // Whether the capacity is enough is checked by plan_memory (memory_plan.h), which knows the
  // sizes.
  void validate() const;
};

}  // namespace riffle
