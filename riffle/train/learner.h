// The learner: takes batches from a stream, keeps what the buffer keeps, and trains on draws from
// it. Training starts once the buffer is full.
//
// Lockstep (train.clock): each stream batch is followed by K updates. Everything is a function of
// the configuration, the seed and the stream. Live: before an update, the batches that arrived
// meanwhile enter the buffer; an update never waits for one.
//
// Used by one thread, stop() apart. The stream is read ahead by a thread of the learner (see
// intake.h) and belongs to it from the first batch on.
//
//   auto stream = open_stream("synthetic:?frames=64");
//   Learner learner(config, *stream);
//   while (auto report = learner.advance()) use(*report);
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include <torch/types.h>

#include "riffle/augment/augment_config.h"
#include "riffle/buffer/buffer_config.h"
#include "riffle/buffer/replay_buffer.h"
#include "riffle/model/model_config.h"
#include "riffle/model/objective.h"
#include "riffle/stream/stream.h"
#include "riffle/tensors/named_tensors.h"
#include "riffle/train/intake.h"
#include "riffle/train/train_config.h"
#include "riffle/train/updater.h"

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
  std::int64_t updates_per_batch() const { return buffer.is_none() ? 1 : train.updates; }
};

// What one update did.
struct UpdateReport {
  std::int64_t update = 0;        // how many were made, this one included
  std::int64_t samples_seen = 0;  // taken from the stream so far
  double lr = 0;
  double same_clip_pairs = 0;  // share of the batch's pairs that come from one clip
  double junk = 0;             // share of the batch that is of the shape junk
  // NaN until measured.
  double loss = std::numeric_limits<double>::quiet_NaN();
  double std = loss;  // collapse gauge, see ObjectiveOutput
};

// Where a learner's thread spent its time so far, in seconds.
struct LearnerTimes {
  double waiting = 0;  // for the stream
  double taking = 0;   // batches into the buffer: storing, features on arrival, eviction
  double drawing = 0;
  double updating = 0;   // on a GPU: queueing updates, and waiting until it may
  double tracking = 0;   // features back into the buffer
  double measuring = 0;  // on a GPU: waiting for the loss
};

class Learner {
 public:
  // `stream` must outlive this. Throws Error for a configuration that cannot work.
  Learner(const LearnerConfig& config, Stream& stream);
  ~Learner();

  // Takes one batch from the stream while the buffer is not full yet; false when it is, or when the
  // stream ended or was stopped. For those who want to see the buffer fill: advance() fills it too.
  bool fill();

  // Makes one update, first taking from the stream what is due. Nothing when the stream has ended
  // or was stopped, or max_updates is reached. Throws Error when the loss is no longer finite,
  // naming the update, and StreamError (intake.h) for what the stream throws: then the learner
  // stands behind the update before and can be saved.
  //
  // Unless its loss is asked for (`measured`), a GPU may still be at work on the update, which
  // keeps it busy while the next one is prepared. A loss that is not finite then shows a few
  // updates later, before anything is saved.
  std::optional<UpdateReport> advance(bool measured = true);
  // Fills in the loss and std of the last update.
  void measure(UpdateReport& report);

  // Ends the wait for the stream; advance() gives nothing from then on. Safe from any thread.
  void stop();

  Objective& objective();
  ReplayBuffer& buffer();
  const ReplayBuffer& buffer() const;
  std::int64_t update() const;  // how many were made
  std::int64_t batches_taken() const;
  std::int64_t samples_seen() const;
  // The share of the samples held that are of the shape junk. O(size).
  double junk_in_buffer() const;
  // What the stream could not use, by reason, until the last batch taken.
  const std::map<std::string, std::int64_t>& skipped() const;
  Intake::Waits waits() const;
  LearnerTimes times() const;

  // All that a learner needs to go on as if nothing had happened, but for the buffer's pictures;
  // copies on the CPU: "network." with the names of parameters and statistics, "momentum." with
  // those of parameters, "buffer." (ReplayBuffer::save), "learner.", and "stream." with the
  // position behind the last batch that entered the buffer: what was read ahead is read again.
  NamedTensors save();
  // Before the first batch; seeks the stream. The pictures of the buffer's live slots must be put
  // after this (replay_buffer.h). Throws Error when the state is of another configuration; the
  // learner must not be used after that.
  void restore(const NamedTensors& state);

 private:
  bool take_stream_batch();
  void insert(StreamBatch batch);
  void take_due();
  Updater::Outcome outcome();

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace riffle
