// Curves for TensorBoard: event files that its own reader opens (`tensorboard --logdir RUN`).
//
// A file is a sequence of TFRecords: length, its checksum, an Event message, its checksum. Every
// train or resume begins a file of its own; TensorBoard reads those of a folder one after the
// other. A file's first record says from which update on older files no longer count.
//
// The files of a run of months stay small: after 2 * `dense` lines only every 2nd is written, after
// 4 * `dense` every 4th, and so on: about `dense` events for each doubling of the run. Used by one
// thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "riffle/base/file.h"
#include "riffle/run/thinning.h"

namespace riffle {

class EventFile {
 public:
  // Begins a file in `folder`, which is made; its name has the time and the process in it, so that
  // names sort by time and none is there twice. `last_update`: of the checkpoint that the run goes
  // on from. Throws Error when it cannot be made; none is left then.
  EventFile(const std::filesystem::path& folder, const Thinning& options,
            std::int64_t last_update = 0);

  // One event: the values as scalars of their names. Those that are not finite are left out.
  // Throws Error when the disk does not take it; the file is as before then.
  void write(std::int64_t update, const std::vector<std::pair<std::string, double>>& values);

  const std::filesystem::path& path() const { return path_; }

  // Whether the line of `update` is written.
  static bool written(std::int64_t update, const Thinning& options);

 private:
  std::filesystem::path path_;
  Thinning options_;
  AppendFile out_;
};

// A TFRecord around `data`.
std::string tf_record(std::string_view data);

// CRC-32C (Castagnoli), as RFC 3720 defines it.
std::uint32_t crc32c(std::string_view data);

}  // namespace riffle
