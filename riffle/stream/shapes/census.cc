#include "riffle/stream/shapes/census.h"

#include <iterator>
#include <string_view>

#include "riffle/base/error.h"
#include "riffle/base/log.h"
#include "riffle/base/text.h"
#include "riffle/stream/picture_listing.h"

namespace riffle {
namespace {

constexpr std::uint64_t kHoldoutSeed = 0x686f6c64;

// Returns a place in a random order of all names. ":" and "#" separate a shard or a film from what
// is in it.
std::int64_t rank(const Sample& sample) {
  constexpr std::string_view kSeparators = "/:#";
  const std::string_view key = sample.key;
  const auto name = key.find_last_of(kSeparators);
  if (name == std::string_view::npos || name == 0) return shuffled_rank(kHoldoutSeed, key);
  // npos + 1 is 0: the whole key.
  return shuffled_rank(kHoldoutSeed, key.substr(key.find_last_of(kSeparators, name - 1) + 1));
}

}  // namespace

Census::Census(Stream& stream, std::int64_t holdout) {
  constexpr std::int64_t kProgressEvery = 1000;
  std::int64_t read = 0, unlabelled = 0;
  // For each label, the lowest ranks, and how many samples have each.
  std::map<std::string, std::map<std::int64_t, std::int64_t>> held;
  while (const auto sample = stream.next()) {
    if (++read % kProgressEvery == 0) {
      show_progress(cat("finding the labels: ", read, " samples, ", counts_.size(), " labels"));
    }
    if (sample->label.empty()) {
      ++unlabelled;
      continue;
    }
    ++counts_[sample->label];
    auto& lowest = held[sample->label];
    ++lowest[rank(*sample)];
    if (static_cast<std::int64_t>(lowest.size()) > holdout) lowest.erase(std::prev(lowest.end()));
  }
  for (const auto& [label, lowest] : held) {
    if (lowest.empty()) continue;
    last_held_out_[label] = lowest.rbegin()->first;
    for (const auto& [unused, samples] : lowest) counts_[label] -= samples;
  }
  if (read >= kProgressEvery) finish_progress();
  if (counts_.empty()) {
    throw Error(cat("the shape lifelong needs labels, but none of ", read, " samples has one"));
  }
  skipped_ = stream.skipped();
  if (unlabelled > 0) skipped_["no label"] += unlabelled;
}

bool Census::held_out(const Sample& sample) const {
  const auto last = last_held_out_.find(sample.label);
  return last != last_held_out_.end() && rank(sample) <= last->second;
}

}  // namespace riffle
