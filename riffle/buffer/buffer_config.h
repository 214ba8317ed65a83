// What the replay buffer keeps, and how it decides who leaves.
#pragma once

#include <cstdint>
#include <string>

#include "riffle/base/fields.h"

namespace riffle {

enum class PolicyKind { none, fifo, reservoir, minred };
enum class FeatureTime { draw, arrival };  // when a sample gets its first feature
enum class TieRule { older, newer };       // who of the most redundant pair leaves
enum class FeatureType { float32, float16, bfloat16 };

struct BufferConfig {
  PolicyKind policy = PolicyKind::minred;
  std::int64_t capacity = 65536;
  FeatureTime features = FeatureTime::draw;
  TieRule tie = TieRule::older;
  double momentum = 0.5;
  std::int64_t draw_limit = 0;
  FeatureType feature_type = FeatureType::float32;

  void describe(Fields& fields);
};

}  // namespace riffle
