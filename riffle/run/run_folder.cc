#include "riffle/run/run_folder.h"

#include <algorithm>
#include <charconv>
#include <iomanip>
#include <string_view>
#include <tuple>

#include "riffle/base/error.h"
#include "riffle/base/file.h"
#include "riffle/base/text.h"
#include "riffle/run/yaml.h"

namespace riffle {
namespace fs = std::filesystem;
namespace {

constexpr const char* kConfigFile = "config.yaml";
constexpr const char* kLockFile = "lock";
constexpr const char* kSetAside = ".damaged";
constexpr const char* kUpdate = "update-";
constexpr const char* kFill = "fill-";
constexpr std::string_view kSegment = "pictures-";
constexpr std::string_view kSegmentEnding = ".bin";

// Names in a folder sort as their numbers do.
std::string numbered(std::string_view kind, std::int64_t number) {
  return cat(kind, std::setfill('0'), std::setw(9), number);
}

// The number in PREFIX number ENDING.
std::optional<std::int64_t> number_in(std::string_view name, std::string_view prefix,
                                      std::string_view ending) {
  if (!name.starts_with(prefix) || !name.ends_with(ending) ||
      name.size() <= prefix.size() + ending.size()) {
    return std::nullopt;
  }
  name = name.substr(prefix.size(), name.size() - prefix.size() - ending.size());
  std::int64_t number = 0;
  const auto parsed = std::from_chars(name.data(), name.data() + name.size(), number);
  if (parsed.ec != std::errc() || parsed.ptr != name.data() + name.size()) return std::nullopt;
  return number;
}

bool is_checkpoint_name(const std::string& name) {
  for (const char* kind : {kUpdate, kFill}) {
    const auto number = number_in(name, kind, "");
    if (number && *number >= 0 && name == numbered(kind, *number)) return true;
  }
  return false;
}

// "fill" comes before "update", and a longer number after a shorter one.
bool made_before(const fs::path& a, const fs::path& b) {
  const auto key = [](const std::string& name) {
    return std::tuple(name.starts_with(kUpdate), name.size(), name);
  };
  return key(a.filename().string()) < key(b.filename().string());
}

}  // namespace

bool RunFolder::is_run(const fs::path& path) {
  std::error_code none;
  return !path.empty() && fs::exists(path / kConfigFile, none);
}

void RunFolder::require_free(const fs::path& path) {
  // An unset variable of a script, not the folder that it runs in.
  if (path.empty()) throw Error("the name of the run folder is empty; give one: --run DIR");
  const RunFolder folder(path);
  std::error_code none;
  const auto metrics = fs::file_size(folder.metrics(), none);
  const bool begun = !folder.checkpoint_names().empty() || folder.latest_checkpoint().has_value() ||
                     (!none && metrics > 0);
  // A run that produced no checkpoint, because its stream was too short or there was no memory, may
  // be tried again.
  if (!begun) return;
  if (is_run(path)) {
    throw Error(cat(path.string(), " holds a run already; give another --run folder, or ",
                    "continue it: riffle resume ", shell_word(path.string())));
  }
  throw Error(cat(path.string(), " holds checkpoints of a run without its ", kConfigFile,
                  "; give another --run folder"));
}

RunFolder RunFolder::create(const fs::path& path, const Config& config) {
  RunFolder folder(path);
  folder.take_lock();
  require_free(path);
  make_folders(folder.checkpoints());
  folder.write_config(config);
  return folder;
}

RunFolder RunFolder::open(const fs::path& path) {
  if (is_run(path)) return RunFolder(path);
  const std::string name = path.empty() ? "''" : path.string();
  std::error_code error;
  const bool there = fs::exists(path / kConfigFile, error);
  if (!there && error == std::errc::permission_denied) {
    throw Error(cat("cannot read the run folder ", name, ": ", error.message()));
  }
  if (fs::is_regular_file(path, error)) throw Error(cat(name, " is a file, not a run folder"));
  if (!path.empty() && !fs::exists(path, error)) throw Error(cat(name, " does not exist"));
  throw Error(cat(name, " is not a run folder: it has no ", kConfigFile));
}

RunFolder RunFolder::open_to_write(const fs::path& path) {
  RunFolder folder = open(path);
  folder.take_lock();
  return folder;
}

RunFolder RunFolder::open_beside(const fs::path& path) {
  RunFolder folder = open(path);
  folder.take_lock(IfTaken::join);
  return folder;
}

void RunFolder::take_lock(IfTaken if_taken) {
  make_folders(path_);
  // What is removed and replaced there would be another run's, whose lock this is not.
  for (const fs::path& own : {checkpoints(), tensorboard()}) {
    if (own != path_ && fs::is_symlink(own)) {
      throw Error(cat(own.string(), " is a symbolic link; riffle writes to a run only in its own ",
                      "folder: move what it leads to there"));
    }
  }
  lock_ = std::make_shared<FileLock>(path_ / kLockFile, cat("run ", path_.string()), if_taken);
}

Config RunFolder::config(const std::vector<std::string>& assignments) const {
  ConfigBuilder builder;
  const fs::path file = path_ / kConfigFile;
  builder.read_yaml_text(read_text(file, kMostYamlBytes), file.string());
  for (const auto& assignment : assignments) builder.set_assignment(assignment);
  return builder.build();
}

void RunFolder::write_config(const Config& config) const {
  require_in_place();
  write_atomically(path_ / kConfigFile, config_yaml(config));
}

std::string RunFolder::checkpoint_name(std::int64_t update, std::int64_t batches) {
  return update > 0 ? numbered(kUpdate, update) : numbered(kFill, batches);
}

std::optional<std::int64_t> RunFolder::update_of(const std::string& checkpoint) {
  return number_in(checkpoint, kUpdate, "");
}

std::string RunFolder::segment_name(std::int64_t segment) {
  return cat(numbered(kSegment, segment), kSegmentEnding);
}

std::optional<std::int64_t> RunFolder::segment_of(const fs::path& file) {
  return number_in(file.filename().string(), kSegment, kSegmentEnding);
}

fs::path RunFolder::state_file(const std::string& checkpoint) const {
  return checkpoints() / (checkpoint + kStateEnding);
}

fs::path RunFolder::manifest(const std::string& checkpoint) const {
  return checkpoints() / (checkpoint + kManifestEnding);
}

std::vector<fs::path> RunFolder::files_ending(const char* ending) const {
  std::vector<fs::path> found;
  for (const auto& path : list_folder(checkpoints())) {
    if (path.extension() == ending && is_checkpoint_name(path.stem().string())) {
      found.push_back(path);
    }
  }
  std::ranges::sort(found, made_before);
  return found;
}

std::vector<std::string> RunFolder::checkpoint_names() const {
  std::vector<std::string> names;
  for (const auto& path : files_ending(kManifestEnding)) names.push_back(path.stem().string());
  return names;
}

fs::path RunFolder::find_checkpoint(const fs::path& given) const {
  fs::path state = given.has_parent_path() ? given : checkpoints() / given;
  state.replace_extension(kStateEnding);
  if (fs::is_regular_file(state)) {
    std::error_code none;
    if (fs::equivalent(state.parent_path(), checkpoints(), none)) return state;
    throw Error(cat(given.string(), " is not a checkpoint of ", path_.string()));
  }
  throw Error(cat(path_.string(), " has no checkpoint '", given.string(),
                  "' (there are: ", join(checkpoint_names(), ", "), ")"));
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

void RunFolder::remove(const std::string& checkpoint) const {
  std::error_code error;
  fs::remove(manifest(checkpoint), error);
  fs::remove(state_file(checkpoint), error);
}

void RunFolder::set_aside(const std::string& checkpoint) const {
  std::error_code error;
  for (const auto& path : {manifest(checkpoint), state_file(checkpoint)}) {
    fs::rename(path, path.string() + kSetAside, error);
  }
}

}  // namespace riffle
