// Where a run lives on disk: config.yaml (complete, resolved), metrics.jsonl, checkpoints/, lock.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "riffle/base/file_lock.h"
#include "riffle/run/config.h"

namespace riffle {

class RunFolder {
 public:
  static constexpr const char* kStateEnding = ".safetensors";
  static constexpr const char* kManifestEnding = ".json";

  // Throws Error when a run is there already, or checkpoints of one.
  static void require_free(const std::filesystem::path& path);
  // Makes the folder and writes config.yaml. Throws Error when a run is there already.
  static RunFolder create(const std::filesystem::path& path, const Config& config);
  // Returns whether a run was begun in `path`.
  static bool is_run(const std::filesystem::path& path);
  // Throws Error when there is no run.
  static RunFolder open(const std::filesystem::path& path);

  // For those who write into the run: one process at a time, a second one gets an Error.
  static FileLock lock(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path metrics() const { return path_ / "metrics.jsonl"; }
  std::filesystem::path tensorboard() const { return path_ / "tensorboard"; }
  std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }

  // With `assignments` ("key=value") in place of what the file says.
  Config config(const std::vector<std::string>& assignments = {}) const;
  void write_config(const Config& config) const;

  // "update-000000200", or "fill-000000012" before the first update: the stream batches taken.
  static std::string checkpoint_name(std::int64_t update, std::int64_t batches);
  std::filesystem::path state_file(const std::string& checkpoint) const;
  std::filesystem::path manifest(const std::string& checkpoint) const;
  // Those with a manifest, oldest first.
  std::vector<std::string> checkpoint_names() const;
  // The state file of the checkpoint that a user means by its name or by one of its files. Throws
  // Error when it is not there.
  std::filesystem::path find_checkpoint(const std::filesystem::path& given) const;
  // The newest state file, of any version; nothing when there is none yet.
  std::optional<std::filesystem::path> latest_checkpoint() const;
  // Removes state files that no manifest names: the last writer was killed in between.
  void remove_uncommitted() const;
  // Manifest first.
  void remove(const std::string& checkpoint) const;
  // Keeps the files of a checkpoint, under names that nobody reads.
  void set_aside(const std::string& checkpoint) const;

 private:
  explicit RunFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::vector<std::filesystem::path> files_ending(const char* ending) const;
  std::filesystem::path path_;
};

}  // namespace riffle
