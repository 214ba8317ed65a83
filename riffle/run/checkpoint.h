// A checkpoint on disk: a manifest, the commit, that names a safetensors file with everything but
// pictures, and the segments of the picture log (picture_log.h) that hold those. All are checked
// when read; docs/formats/run-folder.md has the format.
#pragma once

#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "riffle/base/error.h"
#include "riffle/run/config.h"
#include "riffle/run/picture_log.h"
#include "riffle/run/run_folder.h"
#include "riffle/train/learner.h"

namespace riffle {

// A checkpoint that is half written, or was damaged since.
class DamagedCheckpoint : public Error {
 public:
  explicit DamagedCheckpoint(const std::string& message) : Error(message, ErrorKind::failure) {}
};

struct Checkpoint {
  std::string name;  // "update-000000200"; "fill-000000012" before the first update
  std::int64_t update = 0;
  std::int64_t samples_seen = 0;
  double seconds = 0;                // of training so far
  NamedTensors state;                // Learner::save()
  std::vector<PicturePlace> places;  // of the pictures, in the order of the buffer's live slots
};

// The segments that its pictures are in.
std::set<std::int64_t> segments_of(const Checkpoint& checkpoint);

// Writes the state file, then the manifest; each in one step. Until the manifest is there, the
// checkpoint is not. Throws Error when the disk does not take it; then neither is left.
void write_checkpoint(const RunFolder& folder, const Checkpoint& checkpoint);

// Throws DamagedCheckpoint when it is not whole (pictures are not looked at), Error when it is of a
// version that this riffle does not know.
Checkpoint read_checkpoint(const RunFolder& folder, const std::string& name);

enum class DamagedPictures { refuse, replace };

// Gives the learner, which must be new, a checkpoint's state, and the buffer and `log` its
// pictures. Throws DamagedCheckpoint when a picture is, Error when the checkpoint is of another
// configuration; the learner must not be used after either.
//
// With `replace`, a damaged picture is no reason to throw: its sample gets the picture of another
// one, unless all are damaged. Gives how many do.
std::int64_t restore_checkpoint(const Checkpoint& checkpoint, Learner& learner, PictureLog& log,
                                DamagedPictures damaged = DamagedPictures::refuse);

// The same of one on disk. Throws when its manifest cannot be read.
std::set<std::int64_t> checkpoint_segments(const RunFolder& folder, const std::string& name);

// Of a state file; 0 when it is none.
std::int64_t checkpoint_version(const std::filesystem::path& state);

// The network of a run, with the weights of a checkpoint's safetensors file; untrained (the run's
// own initial weights) without one. Throws Error naming the file when it is damaged or does not fit
// the configuration.
std::shared_ptr<Objective> load_objective(const Config& config);
std::shared_ptr<Objective> load_objective(const Config& config,
                                          const std::filesystem::path& checkpoint);

}  // namespace riffle
