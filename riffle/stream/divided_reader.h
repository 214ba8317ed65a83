// A stream of which several readers decode a share each, and yet all see what one alone would.
//
// Nobody knows whether a picture can be decoded before it is tried, and one that cannot is skipped:
// all that follow it move up. So the readers first take all pictures to be good, each decoding its
// own (Stream::divide()), and tell one another after each round of one batch for each. If one could
// not decode a picture of its own, the round is in doubt: all go back to where it began, and
// decode all of it. The rounds that are kept are those of the whole stream: samples, positions and
// skipped() alike.
//
// A stream that cannot be divided is decoded by every reader, and no round is in doubt. The streams
// of all readers must be the same. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "riffle/stream/stream.h"

namespace riffle {

class DividedReader {
 public:
  // `stream` must outlive this, and is whole again after it.
  DividedReader(Stream& stream, const StreamShare& share);
  ~DividedReader();
  DividedReader(const DividedReader&) = delete;
  DividedReader& operator=(const DividedReader&) = delete;

  // Begins a round. Requires that the one before it was read to its end.
  void begin_round();
  // Returns the next sample of the round; those of other readers may have no picture. Returns
  // nothing at the end of the stream, and from a picture on that puts the round in doubt.
  std::optional<Sample> next();
  bool in_doubt() const { return in_doubt_; }

  // Goes back to `position`, where a round began, and decodes all of the next `rounds`.
  void decode_all(const std::string& position, std::int64_t rounds);

 private:
  void set_divided(bool divided);

  Stream& stream_;
  const StreamShare share_;
  bool can_divide_;
  bool is_divided_ = false;
  std::int64_t read_ = 0;        // samples since it is divided
  std::int64_t decode_all_ = 0;  // rounds
  bool in_doubt_ = false;
};

// For how many rounds everything is decoded after a doubt: for one, and for longer if doubts are
// frequent, so that a stream with many bad pictures is hardly ever read twice. All readers agree,
// for it depends on the rounds alone.
class Caution {
 public:
  static constexpr std::int64_t kMostRounds = 64;

  // Call for each round that no reader doubts.
  void trust();
  // Returns the number of rounds. Call for each that one does.
  std::int64_t doubt();

 private:
  std::int64_t rounds_ = 1;
  std::int64_t left_ = 0;  // of those, rounds still to come
};

}  // namespace riffle
