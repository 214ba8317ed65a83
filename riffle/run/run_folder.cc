#include "riffle/run/run_folder.h"

#include <algorithm>

#include "riffle/base/error.h"
#include "riffle/base/file.h"
#include "riffle/base/text.h"

namespace riffle {
namespace fs = std::filesystem;
namespace {

constexpr const char* kConfigFile = "config.yaml";
constexpr const char* kLockFile = "lock";
constexpr const char* kSetAside = ".damaged";

}  // namespace

void RunFolder::require_free(const fs::path& path) {
  if (fs::exists(path / kConfigFile)) {
    throw Error(cat(path.string(), " holds a run already; give another --run folder, or go on ",
                    "with it: riffle resume ", path.string()));
  }
}

RunFolder RunFolder::create(const fs::path& path, const Config& config) {
  require_free(path);
  RunFolder folder(path);
  fs::create_directories(folder.checkpoints());
  folder.write_config(config);
  return folder;
}

RunFolder RunFolder::open(const fs::path& path) {
  if (!fs::exists(path / kConfigFile)) {
    throw Error(cat(path.string(), " is no run folder: it has no ", kConfigFile));
  }
  return RunFolder(path);
}

FileLock RunFolder::lock(const fs::path& path) {
  fs::create_directories(path);
  return {path / kLockFile, cat("run ", path.string())};
}

Config RunFolder::config(const std::vector<std::string>& assignments) const {
  ConfigBuilder builder;
  builder.read_yaml(path_ / kConfigFile);
  for (const auto& assignment : assignments) builder.set_assignment(assignment);
  return builder.build();
}

void RunFolder::write_config(const Config& config) const {
  write_atomically(path_ / kConfigFile, config_yaml(config));
}

std::string RunFolder::checkpoint_name(std::int64_t update, std::int64_t batches) {
  const std::string digits = std::to_string(update > 0 ? update : batches);
  return cat(update > 0 ? "update-" : "fill-",
             std::string(digits.size() < 9 ? 9 - digits.size() : 0, '0'), digits);
}

fs::path RunFolder::state_file(const std::string& checkpoint) const {
  return checkpoints() / (checkpoint + kStateEnding);
}

fs::path RunFolder::manifest(const std::string& checkpoint) const {
  return checkpoints() / (checkpoint + kManifestEnding);
}

std::vector<fs::path> RunFolder::files_ending(const char* ending) const {
  std::vector<fs::path> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(checkpoints(), error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with('.') && entry.path().extension() == ending) found.push_back(entry.path());
  }
  // "fill" comes before "update", and numbers are padded.
  std::ranges::sort(found);
  return found;
}

std::vector<std::string> RunFolder::checkpoint_names() const {
  std::vector<std::string> names;
  for (const auto& path : files_ending(kManifestEnding)) names.push_back(path.stem().string());
  return names;
}

std::optional<fs::path> RunFolder::latest_checkpoint() const {
  const auto found = files_ending(kStateEnding);
  if (found.empty()) return std::nullopt;
  return found.back();
}

void RunFolder::remove_uncommitted() const {
  std::error_code error;
  for (const auto& state : files_ending(kStateEnding)) {
    if (!fs::exists(manifest(state.stem().string()))) fs::remove(state, error);
  }
}

void RunFolder::set_aside(const std::string& checkpoint) const {
  std::error_code error;
  for (const auto& path : {manifest(checkpoint), state_file(checkpoint)}) {
    fs::rename(path, path.string() + kSetAside, error);
  }
}

}  // namespace riffle
