#include "riffle/run/checkpoint.h"

#include <algorithm>
#include <optional>

#include <ATen/ATen.h>

#include "riffle/base/checksum.h"
#include "riffle/base/text.h"
#include "riffle/model/encoder_weights.h"
#include "riffle/model/state.h"
#include "riffle/run/checkpoint_config.h"
#include "riffle/tensors/out_of_memory.h"
#include "riffle/tensors/safetensors.h"
#include "riffle/train/learner_state.h"

namespace riffle {
namespace fs = std::filesystem;
namespace {

constexpr const char* kSegmentsKey = "pictures.segments";
constexpr const char* kConfigKey = "config";
constexpr const char* kRecordsKey = "pictures.records";

// Segments are numbered from 1, records from 0.
std::vector<PicturePlace> read_places(const NamedTensors& tensors) {
  const auto segments = find_integers(tensors, kSegmentsKey);
  const auto records = find_integers(tensors, kRecordsKey, std::ssize(segments));
  std::vector<PicturePlace> places;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    if (segments[i] < 1 || records[i] < 0) {
      throw Error(cat("a picture in record ", records[i], " of segment ", segments[i]));
    }
    places.push_back({segments[i], records[i]});
  }
  return places;
}

Checkpoint read_whole(const RunFolder& folder, const std::string& name) {
  const Manifest manifest = read_manifest(folder.manifest(name));
  const fs::path state = folder.state_file(name);
  require_whole(state, manifest);
  Checkpoint checkpoint;
  checkpoint.name = name;
  checkpoint.update = manifest.update;
  checkpoint.samples_seen = manifest.samples_seen;
  checkpoint.seconds = manifest.seconds;
  checkpoint.ranks = manifest.ranks;
  Safetensors file = read_safetensors(state);
  checkpoint.config = std::move(file.metadata[kConfigKey]);
  checkpoint.state = std::move(file.tensors);
  try {
    checkpoint.places = read_places(checkpoint.state);
    if (LearnerState::read(checkpoint.state).update != manifest.update) {
      throw Error("it is not of the update that its manifest names");
    }
    const std::size_t samples = saved_buffer_state(checkpoint.state).live.size();
    if (checkpoint.places.size() != samples) {
      throw Error(cat(checkpoint.places.size(), " pictures for ", samples, " samples"));
    }
  } catch (const Error& error) {
    throw DamagedCheckpoint(cat(state.string(), " is damaged: ", error.what()));
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
  tensors.emplace_back(kRecordsKey, integers_tensor(records));
  const fs::path state = folder.state_file(checkpoint.name);
  folder.require_in_place();
  write_safetensors(state, tensors,
                    {{Manifest::kVersionKey, std::to_string(Manifest::kVersion)},
                     {"update", std::to_string(checkpoint.update)},
                     {"samples_seen", std::to_string(checkpoint.samples_seen)},
                     {kConfigKey, checkpoint.config}});
  const Manifest manifest = {.update = checkpoint.update,
                             .samples_seen = checkpoint.samples_seen,
                             .seconds = checkpoint.seconds,
                             .file = state.filename().string(),
                             .bytes = fs::file_size(state),
                             .checksum = checksum_text(file_checksum(state)),
                             .segments = segments_of(checkpoint),
                             .ranks = checkpoint.ranks};
  folder.require_in_place();
  write_manifest(folder.manifest(checkpoint.name), manifest);
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
  } catch (const LostLock&) {
    throw;  // what is there now is not ours
  } catch (...) {
    // The last flush may have failed after the rename: nobody may count on such a manifest.
    folder.remove(checkpoint.name);
    throw;
  }
}

Checkpoint read_checkpoint(const RunFolder& folder, const std::string& name) {
  try {
    return read_whole(folder, name);
  } catch (const UnknownCheckpointVersion&) {
    throw;
  } catch (const std::exception& error) {
    if (is_out_of_memory(error)) throw;  // the file may well be whole
    throw DamagedCheckpoint(error.what());
  }
}

std::int64_t restore_checkpoint(const Checkpoint& checkpoint, Learner& learner, PictureLog& log,
                                DamagedPictures damaged) {
  constexpr std::size_t kAtOnce = 1024;
  learner.restore(checkpoint.state);
  ReplayBuffer& buffer = learner.buffer();
  const bool same_ranks = checkpoint.ranks == learner.ranks().size();
  std::vector<Slot> here;
  std::vector<PicturePlace> places_here;
  for (std::size_t i = 0; i < buffer.live().size(); ++i) {
    if (!buffer.is_here(buffer.live()[i])) continue;
    here.push_back(buffer.live()[i]);
    places_here.push_back(checkpoint.places[i]);
  }
  // Slots without a picture, each with the slot whose picture it may get.
  std::vector<std::pair<Slot, std::optional<Slot>>> without;
  // The last slot whose picture is whole.
  std::optional<Slot> whole;
  for (std::size_t at = 0; at < here.size(); at += kAtOnce) {
    const auto slots = std::span(here).subspan(at, std::min(kAtOnce, here.size() - at));
    std::vector<std::uint64_t> arrivals;
    for (const Slot slot : slots) arrivals.push_back(buffer.info(slot).arrival);
    try {
      const auto places = std::span(places_here).subspan(at, slots.size());
      std::vector<std::size_t> bad;
      auto* const replaced = damaged == DamagedPictures::replace ? &bad : nullptr;
      at::Tensor stored = same_ranks ? log.adopt(slots, arrivals, places, replaced)
                                     : log.read(arrivals, places, replaced);
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
  // What was read is on disk already, and the log knows what could not be read.
  if (same_ranks) buffer.take_changed();
  return std::ssize(without);
}

std::set<std::int64_t> checkpoint_segments(const RunFolder& folder, const std::string& name) {
  return read_manifest(folder.manifest(name)).segments;
}

std::set<std::int64_t> keep_newest_checkpoints(const RunFolder& folder, std::size_t keep) {
  auto names = folder.checkpoint_names();
  for (; names.size() > keep; names.erase(names.begin())) folder.remove(names.front());
  std::set<std::int64_t> needed;
  for (const auto& name : names) needed.merge(checkpoint_segments(folder, name));
  return needed;
}

std::int64_t checkpoint_version(const fs::path& state) {
  try {
    return parse_integer(read_safetensors(state).metadata.at(Manifest::kVersionKey),
                         Manifest::kVersionKey);
  } catch (const std::exception&) {
    return 0;
  }
}

std::shared_ptr<Objective> load_objective(const Config& config) {
  return make_objective(config.learner.model, config.learner.seed);
}

std::shared_ptr<Objective> load_objective(const Config& config, const fs::path& checkpoint) {
  const fs::path manifest = fs::path(checkpoint).replace_extension(RunFolder::kManifestEnding);
  if (fs::exists(manifest)) require_whole(checkpoint, read_manifest(manifest));
  const auto file = read_safetensors(checkpoint);
  const auto version = file.metadata.find(Manifest::kVersionKey);
  // Version 1 had the same names for the network, and neither manifest nor buffer.
  if (version == file.metadata.end() || (version->second != "1" && version->second != "2")) {
    throw Error(cat(checkpoint.string(), " is not a checkpoint of this version of riffle"));
  }
  if (const auto made_with = file.metadata.find(kConfigKey); made_with != file.metadata.end()) {
    require_same_network(config, made_with->second, checkpoint);
  }
  Config without_init = config;
  without_init.learner.model.init.clear();  // the checkpoint has the weights
  try {
    const NamedTensors network = saved_network(file.tensors);
    require_saved_widths(config.learner.model, network);
    auto objective = load_objective(without_init);
    load_state(*objective, network);
    return objective;
  } catch (const Error& error) {
    throw Error(cat(checkpoint.string(), ": ", error.what()));
  }
}

}  // namespace riffle
