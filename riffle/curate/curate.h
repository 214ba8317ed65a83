// One pass over a stream that keeps the pictures worth keeping.
//
// The output folder, while the pass runs:
//   state.safetensors               all that the pass needs to continue, renewed every minute
//   pictures/LABEL/INDEX-NAME.jpg   the pictures kept at that time, as they were, and some since
//   repeats.log                     with `assignments`: every picture that was not kept
// and when it is done:
//   pictures/, or shards of them; selection.csv, selection.html; with `assignments`
//   assignments.csv; encoder.safetensors of an encoder that learned on the way
//
// A pass that was stopped or killed, at any instant, continues with the same call and ends with the
// same selection. A folder with a selection is never written to again.
//
// Several ranks (riffle/dist) share the encoding as embed() does; rank 0 selects and writes, and
// the others only encode. What it leaves does not depend on their number.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "riffle/curate/learning_encoder.h"
#include "riffle/curate/originals.h"
#include "riffle/curate/selector.h"
#include "riffle/dist/ranks.h"
#include "riffle/eval/embedding.h"
#include "riffle/model/encoder.h"

namespace riffle {

// Of what `keep` pictures are kept: of the whole stream, of each label, or of each source (a film,
// a shard, a folder of pictures).
enum class Quota { whole, label, source };

// What happens to pictures that stand alone (selection.h).
enum class Alone { keep, drop, report };

struct CurateConfig {
  std::string stream;
  std::string shapes;
  std::int64_t keep = 0;
  Quota per = Quota::whole;
  double near = -1;
  std::filesystem::path out;
  // Of the encoder, to know it again.
  std::string encoder;
  // What it sees of a picture.
  EncoderInput input = 0;
  std::int64_t batch = 256;
  // Read at most this many samples; 0: all.
  std::int64_t samples = 0;
  // False: only selection.csv and the page.
  bool pictures = true;
  // Names of tar shards, such as "part-%06d.tar", which take the place of pictures/ at the end;
  // empty: none. In each at most `shard_size` pictures.
  std::string shards;
  std::int64_t shard_size = 10000;
  // Of pictures that have no file of their own.
  Encoding encoding = Encoding::jpeg;
  bool assignments = false;
  Alone alone = Alone::keep;
  double save_every_s = 60;
};

struct CurateResult {
  // False: stopped before the end of the stream; the same call continues.
  bool finished = false;
  std::filesystem::path folder;
  std::int64_t samples = 0;
  std::int64_t kept = 0;
  // Of the kept, or with Alone::drop of those dropped.
  std::int64_t alone = 0;
  // By this call. Of its seconds: to compare, choose and save while the stream passed, and to
  // complete the selection at the end.
  double seconds = 0;
  double selection_s = 0;
  double finish_s = 0;
  std::int64_t samples_now = 0;
  std::map<std::string, std::int64_t> skipped;
};

// Returns the film, shard or folder that a sample's key names.
std::string source_of(const std::string& key);

// Returns whether a name has one number to be filled in, as "%06d" or "%d", and nothing else that
// printf would take for its own.
bool is_shard_pattern(const std::string& name);

// Throws Error if the folder holds a selection, a pass with other settings, or anything else; and
// for streams and features as they do. Rank 0 gets the result, and the others an empty one.
CurateResult curate(const CurateConfig& config, Encoder& encoder, Ranks& ranks = one_rank());

// The same, in one process, with an encoder that learns on the way. Each batch teaches it before it
// is compared, and as many of the kept pictures get new features as the batch has; at the end all
// do. Also leaves encoder.safetensors. Needs memory for the kept pictures at its size. Requires
// config.batch and config.input to be the encoder's.
CurateResult curate(const CurateConfig& config, LearningEncoder& encoder);

}  // namespace riffle
