#include "riffle/run/manifest.h"

#include <cmath>
#include <limits>

#include <nlohmann/json.hpp>

#include "riffle/base/checksum.h"
#include "riffle/base/file.h"
#include "riffle/base/text.h"

namespace riffle {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::ordered_json;

// The first line is the content, the second the checksum of the first.
std::string with_checksum(const std::string& line) {
  return cat(line, '\n', checksum_text(checksum(line)), '\n');
}

// The members of a manifest, each of the type it must have: the checksum may be right and the
// content still not be what riffle writes.
class Members {
 public:
  Members(const fs::path& path, const Json& object) : path_(path), object_(object) {
    if (!object.is_object()) damaged("its content is not a JSON object");
  }

  const Json& at(const char* key) const {
    const auto found = object_.find(key);
    if (found == object_.end()) damaged(cat("'", key, "' is missing"));
    return *found;
  }

  std::int64_t count(const char* key) const { return count_of(at(key), key); }

  double seconds(const char* key) const {
    const Json& value = at(key);
    if (!value.is_number() || !(value.get<double>() >= 0) || !std::isfinite(value.get<double>())) {
      damaged(cat("'", key, "' is not a number of seconds"));
    }
    return value;
  }

  std::string text(const char* key) const {
    const Json& value = at(key);
    if (!value.is_string()) damaged(cat("'", key, "' is not a text"));
    return value;
  }

  std::set<std::int64_t> counts(const char* key) const {
    const Json& values = at(key);
    if (!values.is_array()) damaged(cat("'", key, "' is not a list"));
    std::set<std::int64_t> all;
    for (const Json& value : values) all.insert(count_of(value, key));
    return all;
  }

 private:
  [[noreturn]] void damaged(const std::string& why) const {
    throw DamagedCheckpoint(cat(path_.string(), " is damaged: ", why));
  }

  std::int64_t count_of(const Json& value, const char* key) const {
    constexpr std::uint64_t kLargest = std::numeric_limits<std::int64_t>::max();
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > kLargest) {
      damaged(cat("'", key, "' is not a whole number of 0 or more"));
    }
    return value;
  }

  const fs::path& path_;
  const Json& object_;
};

}  // namespace

void write_manifest(const fs::path& path, const Manifest& manifest) {
  Json content = {
      {Manifest::kVersionKey, Manifest::kVersion},
      {"update", manifest.update},
      {"samples_seen", manifest.samples_seen},
      {"seconds", manifest.seconds},
      {"state",
       {{"file", manifest.file}, {"bytes", manifest.bytes}, {"checksum", manifest.checksum}}},
      {"segments", manifest.segments}};
  if (manifest.ranks > 1) content["ranks"] = manifest.ranks;
  write_atomically(path, with_checksum(content.dump()));
}

Manifest read_manifest(const fs::path& path) {
  const std::string text = read_text(path);
  const std::string line = text.substr(0, text.find('\n'));
  if (text != with_checksum(line)) {
    throw DamagedCheckpoint(cat(path.string(), " is damaged: its checksum does not match"));
  }
  const Json content = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  const Members members(path, content);
  const std::int64_t version = members.count(Manifest::kVersionKey);
  if (version != Manifest::kVersion) {
    throw UnknownCheckpointVersion(cat(path.string(), " is a checkpoint of version ", version,
                                       "; this riffle resumes version ", Manifest::kVersion));
  }
  const Members state(path, members.at("state"));
  return {.update = members.count("update"),
          .samples_seen = members.count("samples_seen"),
          .seconds = members.seconds("seconds"),
          .file = state.text("file"),
          .bytes = static_cast<std::uint64_t>(state.count("bytes")),
          .checksum = state.text("checksum"),
          .segments = members.counts("segments"),
          .ranks = content.contains("ranks") ? members.count("ranks") : 1};
}

void require_whole(const fs::path& state, const Manifest& manifest) {
  std::error_code error;
  const auto bytes = fs::file_size(state, error);
  if (error) throw DamagedCheckpoint(cat(state.string(), " cannot be read: ", error.message()));
  if (bytes != manifest.bytes || checksum_text(file_checksum(state)) != manifest.checksum) {
    throw DamagedCheckpoint(cat(state.string(), " is damaged: its checksum does not match"));
  }
}

}  // namespace riffle
