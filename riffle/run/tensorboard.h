// Curves, pictures and the configuration for TensorBoard: event files that its own reader opens
// (`tensorboard --logdir RUN`).
//
// A file is a sequence of TFRecords: length, its checksum, an Event message, its checksum. Every
// train or resume begins a new file; TensorBoard reads the files of a folder one after the other. A
// file's second record says from which update on older files no longer count.
//
// The files of a run of months stay small: after 2 * `dense` lines only every 2nd is written, after
// 4 * `dense` every 4th, and so on: about `dense` events for each doubling of the run.
//
// Used by one thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "riffle/base/file.h"
#include "riffle/image/picture.h"
#include "riffle/run/thinning.h"

namespace riffle {

class EventFile {
 public:
  // Makes `folder` and begins a file in it, whose name holds the time and the process: names sort
  // by time, and none exists twice. `last_update`: of the checkpoint that the run continues from.
  // Throws Error if the file cannot be made; then none is left.
  EventFile(const std::filesystem::path& folder, const Thinning& options,
            std::int64_t last_update = 0);

  // Write one event: a scalar for each value that is finite; write() only if the line of `update`
  // is one that is written. Throw Error if the disk does not take it; then the file is as before.
  void write(std::int64_t update, const std::vector<std::pair<std::string, double>>& values);
  void write_always(std::int64_t update, const std::vector<std::pair<std::string, double>>& values);

  // Write an event: a picture, at any update; and the configuration, for the page HPARAMS. Numbers
  // and "true" or "false" are shown as such. Throw Error as write() does.
  void write_picture(std::int64_t update, const std::string& name, const Picture& picture);
  void write_configuration(const std::vector<std::pair<std::string, std::string>>& values);

  const std::filesystem::path& path() const { return path_; }

  // Returns whether the line of `update` is written.
  static bool written(std::int64_t update, const Thinning& options);

 private:
  std::filesystem::path path_;
  Thinning options_;
  AppendFile out_;
};

// Returns a TFRecord around `data`.
std::string tf_record(std::string_view data);

// Returns the CRC-32C (Castagnoli), as RFC 3720 defines it.
std::uint32_t crc32c(std::string_view data);

}  // namespace riffle
