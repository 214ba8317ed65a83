// The stream that a pass (curate.h) reads, on each of the ranks that share the encoding
// (riffle/dist). All make the same calls. A signal to any of them ends the reading on all, between
// two batches.
//
// Not thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "riffle/curate/curate.h"
#include "riffle/dist/ranks.h"
#include "riffle/eval/embedding.h"
#include "riffle/model/encoder.h"
#include "riffle/run/stop_signals.h"
#include "riffle/stream/stream.h"

namespace riffle {

class PassStream {
 public:
  // Rank 0's pictures have their files (originals.h). Throws Error if the stream cannot be opened.
  // What is given must outlive this.
  PassStream(const CurateConfig& config, Ranks& ranks);

  // Continues after as many pictures, where the stream was at `position`; rank 0 says it for all.
  void seek(std::int64_t samples, const std::string& position);

  // Pass what is left of the stream, or of the samples asked for, to `use` (embedding.h).
  void embed(Encoder& encoder, const UseEmbedded& use);
  void read(const UseBatch& use);
  // Returns whether a signal ended that. The batches that no rank has used yet are then dropped:
  // where batches end decides who is compared.
  bool stopped() const { return stopped_; }

  // Returns what this rank skipped.
  std::map<std::string, std::int64_t> skipped() const { return stream_->skipped(); }

 private:
  // Returns how many samples to read, 0 for all, or nothing if none are left.
  std::optional<std::int64_t> left() const;
  bool agree_to_stop();

  const CurateConfig& config_;
  Ranks& ranks_;
  const std::unique_ptr<Stream> stream_;
  std::int64_t before_ = 0;
  // By a signal to this rank.
  std::atomic<bool> asked_to_stop_ = false;
  bool stopped_ = false;
  const StopSignals signals_;
};

}  // namespace riffle
