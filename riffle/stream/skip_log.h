// What a source could not use: counted by reason, and named in the log without flooding it.
//
// The first few items of each reason are named one by one; after that a line at every power of ten
// says how many there are. Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "riffle/base/log.h"

namespace riffle {

class SkipLog {
 public:
  explicit SkipLog(std::function<void(const std::string&)> write = log_warning)
      : write_(std::move(write)) {}

  // Counts an item. `item` is its path or address, `reason` a few words to count it by, `detail`
  // more for the log (may be empty).
  void add(const std::string& item, const std::string& reason, const std::string& detail);

  // Counts an item that somebody else has logged.
  void count(const std::string& reason) { ++counts_[reason]; }

  const std::map<std::string, std::int64_t>& counts() const { return counts_; }
  // Returns "12 truncated, 3 not a picture", or "" if nothing was skipped.
  std::string summary() const;

 private:
  std::function<void(const std::string&)> write_;
  std::map<std::string, std::int64_t> counts_;
};

}  // namespace riffle
