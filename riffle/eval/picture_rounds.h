// Pictures of a stream, read in rounds of batches while what was read before is used.
//
// One process has a batch in each round. Several ranks (riffle/dist) read the same stream; a round
// then has a batch for each of them, and each decodes only its own, if the stream can be divided
// (divided_reader.h). What the stream throws on one rank is thrown on all.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "riffle/dist/ranks.h"
#include "riffle/stream/stream.h"

namespace riffle {

struct OwnedBatch {
  // [samples, size, size, 3] uint8; undefined if it is another rank's.
  at::Tensor pictures;
  // Their pictures have no pixels any more, but the file if there was one.
  std::vector<Sample> samples;
  // Where the stream was after the last of them.
  std::string position;
};

class RoundUser {
 public:
  virtual ~RoundUser() = default;
  // Batch i is rank i's; at the end of the stream some may have none.
  virtual void take(std::vector<OwnedBatch> batches) = 0;
  // No round follows, since the stream has ended or failed. Not called if the reading was stopped.
  virtual void finish() {}
};

struct RoundsConfig {
  std::int64_t max_samples = 0;  // 0: all that are left
  int size = 0;                  // of the squares that pictures are fitted to, in px
  std::int64_t batch = 256;
  // Read pictures into memory that a GPU copies from several times as fast, and without the host.
  bool for_gpu = false;
  // Asked before each round is used (embedding.h).
  std::function<bool()> is_stopped = {};
};

// Reads the next samples of the stream and shows progress. Returns their number. Needs memory for
// two batches beside what `user` holds. Stops the stream if anything throws.
std::int64_t read_rounds(Stream& stream, const RoundsConfig& config, RoundUser& user,
                         Ranks& ranks = one_rank());

// Returns a line that says how many pictures were read, of `total` if that is known (not 0).
std::string progress_line(std::int64_t done, std::int64_t total);

// Returns the bytes of a square picture.
std::size_t picture_bytes(int size);

}  // namespace riffle
