// The manifest of a checkpoint: the file whose presence commits it, and that says what else belongs
// to it. docs/formats/run-folder.md has the format.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>

#include "riffle/base/error.h"

namespace riffle {

// A checkpoint that is half written, or was damaged since.
class DamagedCheckpoint : public Error {
 public:
  explicit DamagedCheckpoint(const std::string& message) : Error(message, ErrorKind::failure) {}
};

// A checkpoint of a version that this riffle does not resume.
class UnknownCheckpointVersion : public Error {
  using Error::Error;
};

struct Manifest {
  static constexpr std::int64_t kVersion = 2;
  // The version's key, here and in the metadata of the state file.
  static constexpr const char* kVersionKey = "riffle_checkpoint";

  std::int64_t update = 0;
  std::int64_t samples_seen = 0;
  // Of training so far.
  double seconds = 0;
  // The state file: its name, size and checksum.
  std::string file;
  std::uint64_t bytes = 0;
  std::string checksum;
  // Of the picture log.
  std::set<std::int64_t> segments;
  // Ranks that wrote it.
  std::int64_t ranks = 1;
};

// Replaces `path` in one step. Throws Error when the disk does not take it.
void write_manifest(const std::filesystem::path& path, const Manifest& manifest);

// Throws DamagedCheckpoint, naming the file and the key, unless everything is there and of its
// type; UnknownCheckpointVersion if it is of another version; Error when it cannot be read.
Manifest read_manifest(const std::filesystem::path& path);

// Throws DamagedCheckpoint unless the file is the one that the manifest describes.
void require_whole(const std::filesystem::path& state, const Manifest& manifest);

}  // namespace riffle
