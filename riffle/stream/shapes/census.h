// A first reading of a labelled stream: which labels it has, how many samples each, and which of
// them are held out.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "riffle/stream/stream.h"

namespace riffle {

class Census {
 public:
  // Reads the stream from its beginning to its end, which must come; shows progress. Throws Error
  // when no sample has a label.
  //
  // Of each label the `holdout` keys are held out that come first in a fixed random order of names
  // (the last two parts of the key as a path). So they are the same whatever the order of the
  // stream, wherever its files lie, and however often a picture comes.
  Census(Stream& stream, std::int64_t holdout);

  // By label, held-out samples not counted.
  const std::map<std::string, std::int64_t>& counts() const { return counts_; }

  // By the label and the key.
  bool held_out(const Sample& sample) const;

  // What the reading skipped, samples without a label included.
  const std::map<std::string, std::int64_t>& skipped() const { return skipped_; }

 private:
  std::map<std::string, std::int64_t> counts_;
  std::map<std::string, std::int64_t> last_held_out_;  // rank, by label
  std::map<std::string, std::int64_t> skipped_;
};

}  // namespace riffle
