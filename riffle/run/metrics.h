// metrics.jsonl: one JSON object a line, in the order of updates.
//
// The file of a run of months stays small: the newest `dense` lines (and up to as many again) are
// all kept, of older ones every 2nd, of those twice as old every 4th, and so on: about `dense`
// lines for each doubling of the run. Which lines stay depends on the updates' numbers alone. The
// file is thinned once every `dense` lines, in one step.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "riffle/base/file.h"
#include "riffle/run/thinning.h"

namespace riffle {

class MetricsFile {
 public:
  // Appends to `path`. Cuts off lines of updates after `last_update` and an unfinished line. Throws
  // Error if the file cannot be opened.
  MetricsFile(const std::filesystem::path& path, const Thinning& options,
              std::int64_t last_update = 0);

  // Writes one line with one call to the system. A value that is not finite is written as null.
  // Throws Error if the disk does not take it; then the file is as before. Thinning that the disk
  // does not take is left to the next pass.
  void write(std::int64_t update, const std::vector<std::pair<std::string, double>>& values);

  // The same in place of the last line, if that is of `update` already. Writes the whole file
  // again.
  void replace_last(std::int64_t update, const std::vector<std::pair<std::string, double>>& values);

  // Returns whether the line of `update` is still there when `newest` is the newest.
  static bool kept(std::int64_t update, std::int64_t newest, const Thinning& options);

 private:
  void rewrite(std::int64_t newest);
  void thin(std::int64_t newest);

  std::filesystem::path path_;
  Thinning options_;
  std::optional<AppendFile> out_;
};

}  // namespace riffle
