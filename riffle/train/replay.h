// The way from a stream to the samples of an update: batches of the stream enter a replay buffer,
// and draws from it leave. Whoever trains, riffle's learner or a program of yours, asks for the
// next draw.
//
// Drawing starts once the buffer is full. Lockstep (train.clock): K draws follow each stream batch;
// they are a function of the configuration, the seed, the stream and the features tracked. Live:
// before a draw, the batches that arrived meanwhile enter the buffer; a draw never waits for one.
//
// Used by one thread, stop() apart. The stream belongs to a thread of this (intake.h) from the
// first batch on.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "riffle/buffer/replay_buffer.h"
#include "riffle/stream/stream.h"
#include "riffle/train/intake.h"
#include "riffle/train/learner_state.h"
#include "riffle/train/shared_stream.h"
#include "riffle/train/train_config.h"

namespace riffle {

class Replay {
 public:
  // `stream` and `buffer`, which is new or was used without this, must outlive this. `features_of`:
  // as in ReplayBuffer::insert. `temporal`: as augment.temporal; above 0 it requires a buffer of
  // pairs. Several ranks (`sharing`) take the same batches and make the same draws; `buffer` is
  // theirs. Throws Error if the buffer is too small to draw a batch from, or for smaller batches
  // than the stream's.
  Replay(const TrainConfig& train, std::uint64_t seed, Stream& stream, ReplayBuffer& buffer,
         ReplayBuffer::FeaturesOf features_of, std::int64_t temporal = 0,
         const Sharing& sharing = {});

  // Takes one batch from the stream unless the buffer is full. Returns false if it is, or if the
  // stream ended or was stopped. Throws StreamError (intake.h) for what the stream throws.
  bool fill();

  // Takes from the stream what is due, then draws the samples of one update. Returns nothing if the
  // stream was stopped, or has ended and train.drain does not say to continue. Throws StreamError
  // as fill() does, with everything as the last call left it, and Error if the stream ends before
  // the buffer is full.
  std::optional<Draw> next();

  // Ends the wait for the stream; next() returns nothing from then on. Safe from any thread.
  void stop();
  // Returns whether next() returns nothing because of stop(), on this rank or another.
  bool stopped() const { return stopping_; }

  // Returns the number of draws so far.
  std::int64_t draws() const { return draws_; }
  std::int64_t batches_taken() const { return batches_taken_; }
  std::int64_t samples_seen() const { return samples_seen_; }
  // Returns how many samples the stream skipped until the last batch taken, by reason.
  const std::map<std::string, std::int64_t>& skipped() const { return skipped_; }
  // Returns the position of the stream after the last batch that entered the buffer.
  const std::string& position() const { return position_; }
  // Returns Stream::period() as of the last batch taken.
  std::optional<std::int64_t> period() const { return period_; }
  Intake::Waits waits() { return intake_.waits(); }
  // Safe from any thread.
  Intake::Arrivals arrivals() { return intake_.arrivals(); }
  // In seconds so far: batches into the buffer, and draws.
  double taking() const { return taking_; }
  double drawing() const { return drawing_; }

  // Sets everything in `state` but network and momenta. What was read ahead of the last batch that
  // entered the buffer is read again.
  void save(LearnerState& state) const;
  // Restores such a state and seeks the stream. Requires that no batch was taken. The pictures of
  // the buffer's live slots must be put after this (replay_buffer.h). Throws Error if the state is
  // of another configuration; then nothing of this must be used.
  void restore(const LearnerState& state);

 private:
  bool take_stream_batch();
  // Asks all ranks whether one of them was told to stop.
  bool stop_agreed();
  void insert(StreamBatch batch);
  std::vector<std::int64_t> partners_in(const StreamBatch& batch);
  void take_due();

  const TrainConfig train_;
  const std::uint64_t seed_;
  Stream& stream_;
  ReplayBuffer& buffer_;
  const ReplayBuffer::FeaturesOf features_of_;
  const std::int64_t temporal_;
  bool told_of_partners_ = false;
  const Sharing sharing_;

  std::int64_t draws_ = 0;
  std::int64_t draws_due_ = 0;  // left on the last stream batch
  std::int64_t batches_taken_ = 0;
  std::int64_t samples_seen_ = 0;
  std::string position_;
  std::map<std::string, std::int64_t> skipped_;
  // By the stream's own count, until then.
  std::map<std::string, std::int64_t> skipped_before_;
  std::optional<std::int64_t> period_;
  // Of any rank; all ranks have agreed on it.
  bool stopping_ = false;
  std::atomic<bool> stop_asked_ = false;
  double taking_ = 0;
  double drawing_ = 0;
  // Last, so that its thread ends before anything else is destroyed.
  Intake intake_;
  SharedStream batches_;
};

}  // namespace riffle
