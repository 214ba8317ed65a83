// Where a run lives on disk: config.yaml (complete, resolved), metrics.jsonl, event files,
// checkpoints/, the pages about it, lock. Nobody else spells the names of these files;
// docs/formats/run-folder.md lists them.
#pragma once

#include <filesystem>
#include <memory>
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
  // The page about one run, in its folder, or about several.
  static constexpr const char* kReport = "report.html";
  // What a study measured of the run.
  static constexpr const char* kResult = "result.json";

  // Returns whether open() finds a run.
  static bool is_run(const std::filesystem::path& path);
  // Throws Error if a run is there already, or checkpoints of one.
  static void require_free(const std::filesystem::path& path);
  // Makes the folder, takes its lock and writes config.yaml. Throws Error if a run is there already
  // or another process holds the lock.
  static RunFolder create(const std::filesystem::path& path, const Config& config);
  // Opens a run to read it. Throws Error if there is none.
  static RunFolder open(const std::filesystem::path& path);
  // Opens a run to write into it, and takes its lock. Throws Error if there is no run, another
  // process holds the lock, or a folder of the run is a link.
  static RunFolder open_to_write(const std::filesystem::path& path);
  // Opens a run to write into it beside the process that has its lock, as another rank does. Throws
  // Error if there is no run, or no lock.
  static RunFolder open_beside(const std::filesystem::path& path);

  // Must be called before anything in the folder is committed or removed. Throws LostLock if the
  // folder, or its lock, is no longer the one that was opened to write. The lock ends with the last
  // copy of this.
  void require_in_place() const {
    if (lock_) lock_->require_in_place();
  }

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path metrics() const { return path_ / "metrics.jsonl"; }
  // Where TensorBoard's files go: the folder itself, so that TensorBoard calls the run by its name.
  // Runs begun by an earlier riffle have a folder of their own for them, and keep it.
  std::filesystem::path tensorboard() const {
    const auto own = path_ / "tensorboard";
    return std::filesystem::exists(own) ? own : path_;
  }
  std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }
  // What probes found (probe_record.h).
  std::filesystem::path probes() const { return path_ / "probes.jsonl"; }
  // What the process that trains is doing (status_file.h).
  std::filesystem::path status() const { return path_ / "status.json"; }
  std::filesystem::path report() const { return path_ / kReport; }
  std::filesystem::path buffer_page() const { return path_ / "buffer.html"; }

  // With `assignments` ("key=value") in place of what the file says.
  Config config(const std::vector<std::string>& assignments = {}) const;
  void write_config(const Config& config) const;

  // "update-000000200", or "fill-000000012" before the first update: the stream batches taken.
  static std::string checkpoint_name(std::int64_t update, std::int64_t batches);
  // Returns the update in a checkpoint's name; nothing before the first one.
  static std::optional<std::int64_t> update_of(const std::string& checkpoint);
  std::filesystem::path state_file(const std::string& checkpoint) const;
  std::filesystem::path manifest(const std::string& checkpoint) const;
  // Returns the checkpoints with a manifest, oldest first. Files whose names are not those of
  // checkpoints are passed over.
  std::vector<std::string> checkpoint_names() const;
  // Returns the state file of the checkpoint that a user means by its name or by one of its files.
  // Throws Error if it is not there.
  std::filesystem::path find_checkpoint(const std::filesystem::path& given) const;
  // Returns the newest state file, of any version; nothing if there is none yet.
  std::optional<std::filesystem::path> latest_checkpoint() const;
  // Removes state files that no manifest names: the last writer was killed in between.
  void remove_uncommitted() const;
  // Removes the manifest first.
  void remove(const std::string& checkpoint) const;
  // Keeps the files of a checkpoint under names that nobody reads.
  void set_aside(const std::string& checkpoint) const;

  // Segments of the picture log, in checkpoints().
  static std::string segment_name(std::int64_t segment);
  // Returns the number of a segment; nothing if the file is not one.
  static std::optional<std::int64_t> segment_of(const std::filesystem::path& file);

 private:
  explicit RunFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::vector<std::filesystem::path> files_ending(const char* ending) const;
  void take_lock(IfTaken if_taken = IfTaken::refuse);

  std::filesystem::path path_;
  std::shared_ptr<const FileLock> lock_;
};

}  // namespace riffle
