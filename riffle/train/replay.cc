#include "riffle/train/replay.h"

#include <utility>
#include <vector>

#include "riffle/base/clock.h"
#include "riffle/base/error.h"
#include "riffle/base/log.h"
#include "riffle/base/random.h"
#include "riffle/base/text.h"
#include "riffle/train/partners.h"

namespace riffle {
namespace {

// Stream batches read ahead. More would only help a source whose batches take unequal time.
constexpr std::size_t kAhead = 3;

}  // namespace

Replay::Replay(const TrainConfig& train, std::uint64_t seed, Stream& stream, ReplayBuffer& buffer,
               ReplayBuffer::FeaturesOf features_of, std::int64_t temporal, const Sharing& sharing)
    : train_(train),
      seed_(seed),
      stream_(stream),
      buffer_(buffer),
      features_of_(std::move(features_of)),
      temporal_(temporal),
      sharing_(sharing),
      position_(stream.position()),
      intake_(stream, sharing.ranks.part_of(train.samples_per_stream_batch()),
              buffer.picture_size(), kAhead, buffer.picture_device(), sharing.stream_share()),
      batches_(intake_, sharing) {
  if (train.samples_per_stream_batch() > buffer.batch()) {
    throw Error(cat("the buffer takes ", buffer.batch(), " samples at once, not batches of ",
                    train.samples_per_stream_batch()));
  }
  const std::int64_t fresh = train.fresh_samples();
  if (fresh > 0) buffer.hold_newest();
  const std::int64_t replayed = train.batch - fresh;
  const std::int64_t kept = buffer.capacity() - (fresh > 0 ? buffer.batch() : 0);
  if (kept < replayed) {
    throw Error(cat("a buffer of ", buffer.capacity(), " is too small to draw ", replayed,
                    " samples from", fresh > 0 ? " beside those that just came" : "",
                    "; give at least --capacity ", buffer.capacity() + replayed - kept));
  }
}

// A function of the batch's number, so that a run that is resumed chooses the same.
std::vector<std::int64_t> Replay::partners_in(const StreamBatch& batch) {
  if (temporal_ == 0) return {};
  Random random(seed_, Purpose("partner"), static_cast<std::uint64_t>(batches_taken_));
  auto partners = choose_partners(batch.samples, temporal_, random);
  const std::int64_t alone = count_alone(partners);
  if (alone > 0 && !told_of_partners_ && sharing_.ranks.first()) {
    log_warning(
        cat(alone, " of ", partners.size(), " samples of a stream batch have no other frame ",
            "of their clip in it: both views are of the one frame (augment.temporal=", temporal_,
            "); this is said once"));
    told_of_partners_ = true;
  }
  return partners;
}

void Replay::insert(StreamBatch batch) {
  const Ranks::Working working(sharing_.ranks);
  const auto start = Clock::now();
  buffer_.insert(batch.samples, batch.pictures, features_of_, partners_in(batch));
  samples_seen_ += train_.samples_per_stream_batch();
  ++batches_taken_;
  position_ = std::move(batch.position);
  for (const auto& [reason, count] : batch.skipped) {
    const auto before = skipped_before_.find(reason);
    const std::int64_t counted = before == skipped_before_.end() ? 0 : before->second;
    skipped_[reason] += count - counted;
  }
  skipped_before_ = std::move(batch.skipped);
  period_ = batch.period;
  if (buffer_.full()) draws_due_ = train_.updates;
  taking_ += seconds_since(start);
}

bool Replay::take_stream_batch() {
  auto batch = batches_.take();
  if (!batch) {
    stop_agreed();  // a stream that was stopped looks like one that has ended
    return false;
  }
  insert(std::move(*batch));
  return true;
}

bool Replay::stop_agreed() {
  stopping_ = stopping_ || sharing_.ranks.any(stop_asked_);
  return stopping_;
}

bool Replay::fill() { return !buffer_.full() && take_stream_batch(); }

void Replay::take_due() {
  while (fill()) {
  }
  if (!buffer_.full()) return;
  if (train_.clock == ClockKind::lockstep) {
    // Without a batch the stream has ended, or was stopped.
    if (draws_due_ == 0 && !take_stream_batch() && train_.drain && !stopping_) {
      draws_due_ = 1;
    }
    return;
  }
  const std::size_t ready = batches_.ready();
  draws_due_ = ready == 0 && batches_.ended() && !train_.drain ? 0 : 1;
  if (draws_due_ == 0) stop_agreed();
  for (std::size_t i = 0; i < ready && take_stream_batch(); ++i) {
  }
}

std::optional<Draw> Replay::next() {
  if (stop_agreed()) return std::nullopt;
  take_due();
  if (!buffer_.full()) {
    if (stopping_) return std::nullopt;
    const std::int64_t came = samples_seen_ + intake_.left_out();
    if (came == 0) throw Error("the stream ended before its first sample");
    throw Error(cat("the stream ended after ", came, came == 1 ? " sample" : " samples",
                    ", before the buffer of ", buffer_.capacity(), " was full; ",
                    samples_seen_ > 0 ? cat("give --capacity ", samples_seen_, " or less")
                                      : cat("give a --batch of ", came, " or less"),
                    ", or repeat it: --shape loop"));
  }
  // Otherwise the draw is made even when stop() came meanwhile: what entered the buffer belongs to
  // the state after it.
  if (draws_due_ == 0) return std::nullopt;  // the stream has ended

  const auto start = Clock::now();
  Random random(seed_, Purpose("draw"), static_cast<std::uint64_t>(draws_));
  const std::int64_t fresh = train_.fresh_samples();
  Draw draw = fresh > 0 ? buffer_.sample_with_fresh(train_.batch, fresh, random)
                        : buffer_.sample(train_.batch, random);
  ++draws_;
  --draws_due_;
  drawing_ += seconds_since(start);
  return draw;
}

void Replay::stop() {
  stop_asked_ = true;
  intake_.stop();
}

void Replay::save(LearnerState& state) const {
  state.buffer = buffer_.save();
  state.update = draws_;
  state.updates_due = draws_due_;
  state.batches_taken = batches_taken_;
  state.samples_seen = samples_seen_;
  state.position = position_;
  state.skipped = skipped_;
}

void Replay::restore(const LearnerState& state) {
  buffer_.restore(state.buffer);
  draws_ = state.update;
  draws_due_ = state.updates_due;
  batches_taken_ = state.batches_taken;
  samples_seen_ = state.samples_seen;
  skipped_ = state.skipped;
  position_ = state.position;
  const bool taken = batches_taken_ > 0;
  // Before the first batch, a rank with a stream of its own saved no other rank's place: there each
  // stays where it was opened. And what opening skipped is still to be counted.
  if (taken || !sharing_.own_streams) stream_.seek(batches_.own_position(position_));
  if (taken) skipped_before_ = batches_.skipped(stream_.skipped());
}

}  // namespace riffle
