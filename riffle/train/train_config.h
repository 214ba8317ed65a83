// How the network is trained.
#pragma once

#include <cstdint>

#include "riffle/base/fields.h"

namespace riffle {

enum class ClockKind {
  lockstep,  // K updates per stream batch, the same run every time
  live,      // batches enter when they arrive, and training never waits for them
};
// Of activations and their gradients; weights, statistics and the loss are always float32.
enum class Precision {
  best,  // bfloat16 on a GPU, float32 on the CPU
  float32,
  bfloat16,
};

enum class ScheduleKind { cosine, constant, constant_then_decay };

struct TrainConfig {
  // Samples per update.
  std::int64_t batch = 256;
  // Samples per batch taken from the stream; 0: as many as per update.
  std::int64_t stream_batch = 0;
  // K: updates per stream batch.
  std::int64_t updates = 5;
  // Share of an update's batch that comes straight from the last stream batch; the rest is drawn
  // from what the buffer held before it.
  double fresh = 0.0;
  // The end of the schedule and of the run; 0: no end.
  std::int64_t max_updates = 10000;
  // When the stream has ended, the run continues on what the buffer holds until max_updates. No
  // effect without a buffer.
  bool drain = false;
  ClockKind clock = ClockKind::lockstep;
  // For batch 256; scaled by batch / 256.
  double lr = 0.05;
  double momentum = 0.9;
  double weight_decay = 1e-4;
  ScheduleKind schedule = ScheduleKind::constant_then_decay;
  // Where cosine ends, as a share of lr.
  double final_lr = 0.0;
  // constant_then_decay: share of the run after which the decay begins. A run without an end keeps
  // its rate.
  double decay_from = 0.8;
  // SimSiam's option: the predictor's learning rate stays constant.
  bool fixed_predictor_lr = false;
  // Updates before features on arrival are trusted.
  std::int64_t warm_features = 50;
  Precision precision = Precision::best;
  // 0: one per core, divided by the ranks of a machine. Sums, and so the last bits, depend on it.
  std::int64_t threads = 0;

  std::int64_t samples_per_stream_batch() const { return stream_batch > 0 ? stream_batch : batch; }
  // Fresh samples of a batch: fresh * batch, rounded.
  std::int64_t fresh_samples() const;

  void describe(Fields& fields);
  // Throws Error naming the key whose value makes no sense.
  void validate() const;
};

}  // namespace riffle
