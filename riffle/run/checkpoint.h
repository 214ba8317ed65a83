// A checkpoint on disk: a manifest (manifest.h), which commits it, a safetensors file with
// everything but pictures, and the segments of the picture log (picture_log.h) that hold the
// pictures. All are checked when read; docs/formats/run-folder.md has the format.
#pragma once

#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "riffle/run/config.h"
#include "riffle/run/manifest.h"
#include "riffle/run/picture_log.h"
#include "riffle/run/run_folder.h"
#include "riffle/train/learner.h"

namespace riffle {

struct Checkpoint {
  // RunFolder::checkpoint_name().
  std::string name;
  std::int64_t update = 0;
  std::int64_t samples_seen = 0;
  // Of training so far.
  double seconds = 0;
  // What it was made with, as config_yaml() writes it. Empty: not known, in old ones.
  std::string config;
  // Learner::save().
  NamedTensors state;
  // Of the pictures, in the order of the buffer's live slots.
  std::vector<PicturePlace> places;
  // Ranks that wrote it, each the pictures that lived with it.
  std::int64_t ranks = 1;
};

// Returns the segments that its pictures are in.
std::set<std::int64_t> segments_of(const Checkpoint& checkpoint);

// Writes the state file, then the manifest, each in one step. Without its manifest a checkpoint
// does not exist. Throws Error if the disk does not take one of them; then neither is left.
// Throws LostLock as RunFolder::require_in_place() does.
void write_checkpoint(const RunFolder& folder, const Checkpoint& checkpoint);

// Throws DamagedCheckpoint if it is not whole or its state makes no sense (pictures are not looked
// at), UnknownCheckpointVersion if it is of another version.
Checkpoint read_checkpoint(const RunFolder& folder, const std::string& name);

enum class DamagedPictures { refuse, replace };

// Gives a checkpoint's state to the learner, which must be new, and its pictures to the buffer and
// to `log`. Throws DamagedCheckpoint if a picture is damaged, Error if the checkpoint is of another
// configuration; the learner must not be used after either.
//
// A rank gets the pictures that live with it. If another number of ranks wrote the checkpoint, they
// have to be appended to `log` again.
//
// With `replace`, a sample whose picture is damaged gets the picture of another sample, unless all
// are damaged. Returns the number of such samples.
std::int64_t restore_checkpoint(const Checkpoint& checkpoint, Learner& learner, PictureLog& log,
                                DamagedPictures damaged = DamagedPictures::refuse);

// Returns the segments of a checkpoint on disk. Throws Error if its manifest cannot be read.
std::set<std::int64_t> checkpoint_segments(const RunFolder& folder, const std::string& name);

// Removes all but the newest `keep` checkpoints. Returns the segments that those need. Throws Error
// if a manifest of theirs cannot be read.
std::set<std::int64_t> keep_newest_checkpoints(const RunFolder& folder, std::size_t keep);

// Returns the version of a state file; 0 if it is not one.
std::int64_t checkpoint_version(const std::filesystem::path& state);

// Returns the network of a run with the weights of a checkpoint's safetensors file, or with the
// run's initial weights. Throws Error, naming the file, if it is damaged or does not fit the
// configuration, and as require_same_network() does (checkpoint_config.h).
std::shared_ptr<Objective> load_objective(const Config& config);
std::shared_ptr<Objective> load_objective(const Config& config,
                                          const std::filesystem::path& checkpoint);

}  // namespace riffle
