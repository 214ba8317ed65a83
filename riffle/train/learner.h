// The learner: takes batches from a stream, keeps what the buffer keeps, and trains on draws from
// it.
//
// Lockstep: training starts once the buffer is full; then each stream batch is followed by K
// updates. Everything is a function of the configuration, the seed and the stream. Used by one
// thread.
//
//   auto stream = open_stream("synthetic:?frames=64");
//   Learner learner(config, *stream);
//   while (auto report = learner.advance()) use(*report);
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <torch/types.h>

#include "riffle/augment/augment_config.h"
#include "riffle/buffer/buffer_config.h"
#include "riffle/buffer/replay_buffer.h"
#include "riffle/model/model_config.h"
#include "riffle/model/objective.h"
#include "riffle/model/state.h"
#include "riffle/stream/stream.h"
#include "riffle/train/train_config.h"

namespace riffle {

struct LearnerConfig {
  BufferConfig buffer;
  AugmentConfig augment;
  ModelConfig model;
  TrainConfig train;
  std::int64_t picture_size = 0;  // side of the stored pictures, px; 0: that of the views
  std::uint64_t seed = 0;
  std::string device = "cpu";

  std::int64_t stored_size() const { return picture_size > 0 ? picture_size : augment.size; }
  // K. Without a buffer a batch is used once, whatever train.updates says.
  std::int64_t updates_per_batch() const {
    return buffer.policy == PolicyKind::none ? 1 : train.updates;
  }
};

// What one update did.
struct UpdateReport {
  std::int64_t update = 0;        // how many were made, this one included
  std::int64_t samples_seen = 0;  // taken from the stream so far
  double loss = 0;
  double std = 0;  // collapse gauge, see ObjectiveOutput
  double lr = 0;
  double same_clip_pairs = 0;  // share of the batch's pairs that come from one clip
};

// What was learned so far: copies on the CPU, by name.
struct LearnerWeights {
  NamedTensors network;
  NamedTensors momenta;  // of the optimiser, by the parameters' names
};

class Learner {
 public:
  // `stream` must outlive this. Throws Error for a configuration that cannot work.
  Learner(const LearnerConfig& config, Stream& stream);
  ~Learner();

  // Makes one update, first taking from the stream what is due. Nothing when the stream has ended
  // or max_updates is reached. Throws Error when the loss is no longer finite, naming the update.
  std::optional<UpdateReport> advance();

  Objective& objective();
  const ReplayBuffer& buffer() const;
  std::int64_t samples_seen() const;

  LearnerWeights weights();

 private:
  bool take_stream_batch();

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace riffle
