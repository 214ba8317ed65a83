// How the network is trained.
#pragma once

#include <cstdint>

#include "riffle/base/fields.h"

namespace riffle {

// lockstep: K updates per stream batch, the same run every time. live: batches enter when they
// arrive, training never waits for them.
enum class ClockKind { lockstep, live };
// Of activations and their gradients; weights, statistics and the loss are float32 always. best:
// bfloat16 on a GPU, float32 on the CPU.
enum class Precision { best, float32, bfloat16 };

enum class ScheduleKind { cosine, constant, constant_then_decay };

struct TrainConfig {
  std::int64_t batch = 256;          // samples per update, and per batch taken from the stream
  std::int64_t updates = 5;          // K: updates per stream batch
  std::int64_t max_updates = 10000;  // the end of the schedule and of the run; 0: no end
  ClockKind clock = ClockKind::lockstep;
  double lr = 0.05;  // for batch 256; scaled by batch/256
  double momentum = 0.9;
  double weight_decay = 1e-4;
  ScheduleKind schedule = ScheduleKind::cosine;
  double final_lr = 0.0;    // where cosine ends, as a share of lr
  double decay_from = 0.8;  // constant-then-decay: share of the run after which the decay begins
  bool fixed_predictor_lr = false;  // SimSiam's option: the predictor's lr stays constant
  std::int64_t warm_features = 50;  // updates before features on arrival are trusted
  Precision precision = Precision::best;
  std::int64_t threads = 0;  // 0: one per core. Sums, and so the last bits, depend on it

  void describe(Fields& fields);
  // Throws Error naming the key whose value makes no sense.
  void validate() const;
};

}  // namespace riffle
