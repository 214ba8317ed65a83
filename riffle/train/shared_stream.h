// Batches of the stream as all ranks (riffle/dist) see them: each rank reads its part, and what is
// known of the samples is exchanged, so that all take the same batch, end together and fail
// together.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "riffle/dist/ranks.h"
#include "riffle/stream/divided_reader.h"
#include "riffle/stream/stream.h"
#include "riffle/train/intake.h"

namespace riffle {

// How ranks share the work and the stream.
struct Sharing {
  // Must outlive whoever is given this.
  Ranks& ranks = one_rank();
  // Each rank has a stream of its own. Otherwise all opened the same one, and divide it.
  bool own_streams = false;

  // Returns which part of the stream this rank reads.
  StreamShare stream_share() const {
    return own_streams ? StreamShare() : StreamShare{ranks.rank(), ranks.size()};
  }
};

// A stream as this rank reads it.
struct RankStream {
  std::unique_ptr<Stream> stream;
  Sharing sharing;
};

// Opens a stream (open_stream()). If its address or shapes name this rank's numbers
// (Ranks::fill_in), each rank has one of its own. `ranks` must outlive what is returned.
RankStream open_rank_stream(const std::string& uri, const std::string& shapes, Ranks& ranks);

class SharedStream {
 public:
  SharedStream(Intake& intake, const Sharing& sharing) : intake_(intake), sharing_(sharing) {}

  // Waits for the next batch of all ranks and returns it: the samples of all, rank by rank, with
  // this rank's pictures. Returns nothing, on all ranks, if the stream ended or was stopped on one.
  // Throws StreamError, on all, for what the stream of one threw, and if ranks that divide one
  // stream are no longer at the same place in it.
  std::optional<StreamBatch> take();

  // Returns what all ranks' streams skipped (StreamBatch::skipped), given what this rank's did.
  std::map<std::string, std::int64_t> skipped(const std::map<std::string, std::int64_t>& own);

  // Returns how many batches all ranks have ready. If one of them is in doubt (divided_reader.h),
  // take() waits until it is read again.
  std::size_t ready();
  // Returns whether the stream of some rank has ended or was stopped. Requires that ready()
  // returned 0.
  bool ended() { return sharing_.ranks.any(intake_.ended()); }

  // Returns this rank's part of a StreamBatch::position. Throws Error if it is of another number of
  // ranks and each has a stream of its own.
  std::string own_position(const std::string& position) const;

 private:
  Intake& intake_;
  const Sharing sharing_;
  Caution caution_;
};

}  // namespace riffle
