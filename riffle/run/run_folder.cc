#include "riffle/run/run_folder.h"

#include <algorithm>
#include <vector>

#include "riffle/base/error.h"
#include "riffle/base/file.h"
#include "riffle/base/text.h"

namespace riffle {
namespace fs = std::filesystem;
namespace {

constexpr const char* kConfigFile = "config.yaml";
constexpr const char* kCheckpointFolder = "checkpoints";
constexpr const char* kCheckpointEnding = ".safetensors";

}  // namespace

void RunFolder::require_free(const fs::path& path) {
  if (fs::exists(path / kConfigFile)) {
    throw Error(cat(path.string(), " holds a run already; give another --run folder"));
  }
}

RunFolder RunFolder::create(const fs::path& path, const Config& config) {
  require_free(path);
  write_atomically(path / kConfigFile, config_yaml(config));
  fs::create_directories(path / kCheckpointFolder);
  return RunFolder(path);
}

RunFolder RunFolder::open(const fs::path& path) {
  if (!fs::exists(path / kConfigFile)) {
    throw Error(cat(path.string(), " is no run folder: it has no ", kConfigFile));
  }
  return RunFolder(path);
}

fs::path RunFolder::checkpoint(std::int64_t update) const {
  const std::string digits = std::to_string(update);
  const std::string padded = std::string(digits.size() < 9 ? 9 - digits.size() : 0, '0') + digits;
  return path_ / kCheckpointFolder / ("update-" + padded + kCheckpointEnding);
}

std::optional<fs::path> RunFolder::latest_checkpoint() const {
  std::vector<fs::path> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(path_ / kCheckpointFolder, error)) {
    if (entry.path().extension() == kCheckpointEnding) found.push_back(entry.path());
  }
  if (found.empty()) return std::nullopt;
  return *std::max_element(found.begin(), found.end());
}

Config RunFolder::config() const {
  ConfigBuilder builder;
  builder.read_yaml(path_ / kConfigFile);
  return builder.build();
}

}  // namespace riffle
