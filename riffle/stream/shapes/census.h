// A first pass over a labelled stream: which labels it has, how many samples each, and which of
// them are held out.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "riffle/stream/stream.h"

namespace riffle {

class Census {
 public:
  // Reads the stream from its beginning to its end and shows progress. Requires a stream that ends.
  // Throws Error if no sample has a label.
  //
  // For each label, holds out the `holdout` keys that come first in a fixed random order of names
  // (the last two parts of the key as a path). So they are the same whatever the order of the
  // stream, wherever its files are, and however often a picture comes.
  Census(Stream& stream, std::int64_t holdout);

  // Returns the number of samples by label, without those held out.
  const std::map<std::string, std::int64_t>& counts() const { return counts_; }

  // Returns whether a sample is held out, by its label and key.
  bool held_out(const Sample& sample) const;

  // Returns what the pass skipped, including samples without a label.
  const std::map<std::string, std::int64_t>& skipped() const { return skipped_; }

 private:
  std::map<std::string, std::int64_t> counts_;
  std::map<std::string, std::int64_t> last_held_out_;  // rank, by label
  std::map<std::string, std::int64_t> skipped_;
};

}  // namespace riffle
