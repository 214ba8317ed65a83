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
#include "riffle/train/shared_stream.h"
#include "riffle/train/train_config.h"
#include "riffle/train/updater.h"

namespace riffle {

struct LearnerConfig {
  BufferConfig buffer;
  AugmentConfig augment;
  ModelConfig model;
  TrainConfig train;
  // Side of the stored pictures, px; 0: the views'.
  std::int64_t picture_size = 0;
  std::uint64_t seed = 0;
  std::string device = "cpu";

  std::int64_t stored_size() const { return picture_size > 0 ? picture_size : augment.size; }
  // Returns the buffer's configuration with what follows from the others: without a buffer it is
  // one batch large, and it keeps pairs if views are of two frames.
  BufferConfig buffer_config() const;
  // Returns K. Without a buffer a batch is used once, whatever train.updates says.
  std::int64_t updates_per_batch() const { return buffer.is_none() ? 1 : train.updates; }
};

// What one update did.
struct UpdateReport {
  // Updates so far, this one included.
  std::int64_t update = 0;
  // Samples taken from the stream so far.
  std::int64_t samples_seen = 0;
  double lr = 0;
  // Share of the batch's pairs that come from one clip.
  double same_clip_pairs = 0;
  // Share of the batch that the shape junk put in.
  double junk = 0;
  // NaN until measured.
  double loss = std::numeric_limits<double>::quiet_NaN();
  // Collapse gauge, see ObjectiveOutput; NaN until measured.
  double std = loss;
};

// Where a learner's thread spent its time so far, in seconds.
struct LearnerTimes {
  // Waiting for the stream.
  double waiting = 0;
  // Batches into the buffer: storing, features on arrival, eviction.
  double taking = 0;
  double drawing = 0;
  // On a GPU: queueing updates, and waiting until it may.
  double updating = 0;
  // Features back into the buffer.
  double tracking = 0;
  // On a GPU: waiting for the loss.
  double measuring = 0;
};

class Learner {
 public:
  // `stream` must outlive this. Throws Error for a configuration that cannot work.
  //
  // Several ranks (`sharing`) train one network: all make the same calls, decide alike and have the
  // same weights. Numbers of the configuration are those of all ranks together: each reads and
  // trains on its part of a batch, and holds its part of the buffer's pictures. advance() throws
  // Error if ranks do not agree.
  Learner(const LearnerConfig& config, Stream& stream, const Sharing& sharing = {});
  ~Learner();

  // Takes one batch from the stream unless the buffer is full. Returns false if it is, or if the
  // stream ended or was stopped. Only needed to watch the buffer fill: advance() fills it too.
  bool fill();

  // Makes one update, first taking from the stream what is due, and returns its report, or nothing
  // if the stream has ended or was stopped, or max_updates is reached. Throws Error if the loss is
  // no longer finite, naming the update, and StreamError (intake.h) for what the stream throws:
  // then the learner is as the update before left it and can be saved.
  //
  // Unless its loss is asked for (`measured`), a GPU may still be working on the update, which
  // keeps it busy while the next one is prepared. A loss that is not finite then shows a few
  // updates later, before anything is saved.
  std::optional<UpdateReport> advance(bool measured = true);
  // Fills in the loss and std of the last update.
  void measure(UpdateReport& report);

  // Ends the wait for the stream; advance() returns nothing from then on, on all ranks. Safe from
  // any thread.
  void stop();
  // Returns whether advance() returned nothing because of stop(), on this rank or another.
  bool stopped() const;

  // Returns those who learn together.
  Ranks& ranks() const;
  Objective& objective();
  ReplayBuffer& buffer();
  const ReplayBuffer& buffer() const;
  // Returns the number of updates so far.
  std::int64_t update() const;
  std::int64_t batches_taken() const;
  std::int64_t samples_seen() const;
  // Returns the share of the samples held that the shape junk put in. O(size).
  double junk_in_buffer() const;
  // Returns how many samples the stream skipped until the last batch taken, by reason.
  const std::map<std::string, std::int64_t>& skipped() const;
  // Returns Stream::period() as of the last batch taken.
  std::optional<std::int64_t> stream_period() const;
  Intake::Waits waits() const;
  // Safe from any thread.
  Intake::Arrivals arrivals() const;
  LearnerTimes times() const;

  // Returns all that a learner needs to continue as if nothing had happened (learner_state.h), but
  // for the buffer's pictures; copies on the CPU. What was read ahead of the last batch that
  // entered the buffer is read again.
  NamedTensors save();
  // Restores such a state and seeks the stream. Requires that no batch was taken. The pictures of
  // the buffer's live slots must be put after this (replay_buffer.h). Throws Error if the state is
  // of another configuration; then the learner must not be used.
  void restore(const NamedTensors& state);

 private:
  // Returns what `call` returns, with a better message for what it throws.
  template <typename Call>
  auto explain_failure(const Call& call);
  Updater::Outcome outcome();

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace riffle
