// Where a run lives on disk: config.yaml (complete, resolved), metrics.jsonl, checkpoints/.
#pragma once

#include <filesystem>
#include <optional>

#include "riffle/run/config.h"

namespace riffle {

class RunFolder {
 public:
  // Throws Error when a run is there already.
  static void require_free(const std::filesystem::path& path);
  // Makes the folder and writes config.yaml. Throws Error when a run is there already.
  static RunFolder create(const std::filesystem::path& path, const Config& config);
  // Throws Error when there is no run.
  static RunFolder open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path metrics() const { return path_ / "metrics.jsonl"; }
  std::filesystem::path checkpoint(std::int64_t update) const;
  // The checkpoint of the largest update; nothing when there is none yet.
  std::optional<std::filesystem::path> latest_checkpoint() const;
  Config config() const;

 private:
  explicit RunFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

}  // namespace riffle
