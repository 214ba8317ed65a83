#include "riffle/run/checkpoint.h"

#include <algorithm>
#include <optional>

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

#include "riffle/base/checksum.h"
#include "riffle/base/file.h"
#include "riffle/base/text.h"
#include "riffle/model/state.h"
#include "riffle/tensors/safetensors.h"

namespace riffle {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kNetwork = "network.";
constexpr const char* kVersionKey = "riffle_checkpoint";
constexpr std::int64_t kVersion = 2;
constexpr const char* kSegmentsKey = "pictures.segments";
constexpr const char* kRecords = "pictures.records";

class UnknownVersion : public Error {
  using Error::Error;
};

// The manifest's first line is its content, the second the checksum of the first.
std::string manifest_text(const Json& manifest) {
  const std::string line = manifest.dump();
  return cat(line, '\n', checksum_text(checksum(line)), '\n');
}

Json read_manifest(const fs::path& path) {
  const std::string text = read_text(path);
  const std::string line = text.substr(0, text.find('\n'));
  if (text != cat(line, '\n', checksum_text(checksum(line)), '\n')) {
    throw DamagedCheckpoint(cat(path.string(), " is damaged: its checksum is another"));
  }
  Json manifest = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  const auto version = manifest.is_object() ? manifest.value(kVersionKey, std::int64_t{0}) : 0;
  if (version != kVersion) {
    throw UnknownVersion(cat(path.string(), " is a checkpoint of version ", version,
                             "; this riffle resumes version ", kVersion));
  }
  return manifest;
}

void require_whole(const fs::path& path, const Json& about) {
  if (fs::file_size(path) != about.at("bytes").get<std::uint64_t>() ||
      checksum_text(file_checksum(path)) != about.at("checksum").get<std::string>()) {
    throw DamagedCheckpoint(cat(path.string(), " is damaged: its checksum is another"));
  }
}

Checkpoint read_whole(const RunFolder& folder, const std::string& name) {
  const Json manifest = read_manifest(folder.manifest(name));
  const fs::path state = folder.state_file(name);
  require_whole(state, manifest.at("state"));
  Checkpoint checkpoint;
  checkpoint.name = name;
  checkpoint.update = manifest.at("update");
  checkpoint.samples_seen = manifest.at("samples_seen");
  checkpoint.seconds = manifest.at("seconds");
  checkpoint.state = read_safetensors(state).tensors;
  const auto segments = find_integers(checkpoint.state, kSegmentsKey);
  const auto records =
      find_integers(checkpoint.state, kRecords, static_cast<std::int64_t>(segments.size()));
  for (std::size_t i = 0; i < segments.size(); ++i) {
    checkpoint.places.push_back({segments[i], records[i]});
  }
  return checkpoint;
}

void write_files(const RunFolder& folder, const Checkpoint& checkpoint) {
  std::vector<std::int64_t> segments, records;
  for (const auto& place : checkpoint.places) {
    segments.push_back(place.segment);
    records.push_back(place.record);
  }
  NamedTensors tensors = checkpoint.state;
  tensors.emplace_back(kSegmentsKey, integers_tensor(segments));
  tensors.emplace_back(kRecords, integers_tensor(records));
  const fs::path state = folder.state_file(checkpoint.name);
  write_safetensors(state, tensors,
                    {{kVersionKey, std::to_string(kVersion)},
                     {"update", std::to_string(checkpoint.update)},
                     {"samples_seen", std::to_string(checkpoint.samples_seen)}});
  const Json manifest = {{kVersionKey, kVersion},
                         {"update", checkpoint.update},
                         {"samples_seen", checkpoint.samples_seen},
                         {"seconds", checkpoint.seconds},
                         {"state",
                          {{"file", state.filename().string()},
                           {"bytes", fs::file_size(state)},
                           {"checksum", checksum_text(file_checksum(state))}}},
                         {"segments", segments_of(checkpoint)}};
  write_atomically(folder.manifest(checkpoint.name), manifest_text(manifest));
}

}  // namespace

std::set<std::int64_t> segments_of(const Checkpoint& checkpoint) {
  std::set<std::int64_t> segments;
  for (const auto& place : checkpoint.places) segments.insert(place.segment);
  return segments;
}

void write_checkpoint(const RunFolder& folder, const Checkpoint& checkpoint) {
  try {
    write_files(folder, checkpoint);
  } catch (...) {
    // The last flush may have failed, behind the rename: nobody may count on such a manifest.
    folder.remove(checkpoint.name);
    throw;
  }
}

Checkpoint read_checkpoint(const RunFolder& folder, const std::string& name) {
  try {
    return read_whole(folder, name);
  } catch (const UnknownVersion&) {
    throw;
  } catch (const std::exception& error) {
    throw DamagedCheckpoint(error.what());
  }
}

std::int64_t restore_checkpoint(const Checkpoint& checkpoint, Learner& learner, PictureLog& log,
                                DamagedPictures damaged) {
  constexpr std::size_t kAtOnce = 1024;
  learner.restore(checkpoint.state);
  ReplayBuffer& buffer = learner.buffer();
  const std::span<const Slot> live = buffer.live();
  if (checkpoint.places.size() != live.size()) {
    throw DamagedCheckpoint(cat(checkpoint.name, " is damaged: it has ", checkpoint.places.size(),
                                " pictures for ", live.size(), " samples"));
  }
  std::vector<std::pair<Slot, std::optional<Slot>>> without;  // a picture, and whose it may get
  std::optional<Slot> whole;                                  // the last one whose picture is
  for (std::size_t at = 0; at < live.size(); at += kAtOnce) {
    const auto slots = live.subspan(at, std::min(kAtOnce, live.size() - at));
    std::vector<std::uint64_t> arrivals;
    for (const Slot slot : slots) arrivals.push_back(buffer.info(slot).arrival);
    try {
      const auto places = std::span(checkpoint.places).subspan(at, slots.size());
      std::vector<std::size_t> bad;
      at::Tensor stored =
          log.adopt(slots, arrivals, places, damaged == DamagedPictures::replace ? &bad : nullptr);
      std::vector<Slot> good;
      std::vector<std::int64_t> rows;
      for (std::size_t i = 0; i < slots.size(); ++i) {
        if (std::ranges::find(bad, i) != bad.end()) {
          without.emplace_back(slots[i], whole);
          continue;
        }
        whole = slots[i];
        good.push_back(slots[i]);
        rows.push_back(static_cast<std::int64_t>(i));
      }
      if (!bad.empty()) stored = stored.index_select(0, integers_tensor(rows));
      if (!good.empty()) buffer.put_stored(good, stored);
    } catch (const Error& error) {
      throw DamagedCheckpoint(error.what());
    }
  }
  if (!without.empty() && !whole) {
    throw DamagedCheckpoint(cat(checkpoint.name, " is damaged: none of its pictures can be read"));
  }
  for (const auto& [slot, other] : without) {
    const Slot from = other.value_or(*whole);
    buffer.put_stored(std::span(&slot, 1), buffer.stored(std::span(&from, 1)));
  }
  // What was read is on disk already, and the log knows what was not.
  buffer.take_changed();
  return std::ssize(without);
}

std::set<std::int64_t> checkpoint_segments(const RunFolder& folder, const std::string& name) {
  return read_manifest(folder.manifest(name)).at("segments").get<std::set<std::int64_t>>();
}

std::int64_t checkpoint_version(const fs::path& state) {
  try {
    return parse_integer(read_safetensors(state).metadata.at(kVersionKey), kVersionKey);
  } catch (const std::exception&) {
    return 0;
  }
}

std::shared_ptr<Objective> load_objective(const Config& config) {
  return make_objective(config.learner.model, config.learner.seed);
}

std::shared_ptr<Objective> load_objective(const Config& config, const fs::path& checkpoint) {
  const fs::path manifest = fs::path(checkpoint).replace_extension(RunFolder::kManifestEnding);
  if (fs::exists(manifest)) require_whole(checkpoint, read_manifest(manifest).at("state"));
  const auto file = read_safetensors(checkpoint);
  const auto version = file.metadata.find(kVersionKey);
  // Version 1 had the same names for the network, and neither manifest nor buffer.
  if (version == file.metadata.end() || (version->second != "1" && version->second != "2")) {
    throw Error(cat(checkpoint.string(), " is no checkpoint of this version of riffle"));
  }
  Config without_init = config;
  without_init.learner.model.init.clear();  // the checkpoint has the weights
  auto objective = load_objective(without_init);
  try {
    load_state(*objective, find_part(file.tensors, kNetwork));
  } catch (const Error& error) {
    throw Error(cat(checkpoint.string(), ": ", error.what()));
  }
  return objective;
}

}  // namespace riffle
