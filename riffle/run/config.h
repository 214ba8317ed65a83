// The complete configuration of a run: one struct per room, written by YAML files and --set alike.
#pragma once

#include <filesystem>
#include <set>
#include <span>
#include <string>

#include "riffle/base/fields.h"
#include "riffle/train/learner.h"

namespace riffle {

struct CheckpointConfig {
  std::int64_t every = 1000;  // updates; 0: only at the end
  std::int64_t keep = 2;
  bool wait = false;  // for the disk, so that each is of the very update it was due at

  void describe(Fields& fields) {
    fields.add("checkpoint.every", every, "updates between checkpoints; 0: only at the end");
    fields.add("checkpoint.keep", keep, "the newest checkpoints that are kept");
    fields.add("checkpoint.wait", wait,
               "training waits for the disk rather than have a checkpoint later than it is due");
  }
};

struct MetricsConfig {
  std::int64_t every = 10;            // updates
  std::int64_t nearest_every = 1000;  // updates; compares all features in the buffer
  std::int64_t dense = 4096;          // lines; see metrics.h

  void describe(Fields& fields) {
    fields.add("metrics.every", every, "updates between lines of metrics.jsonl");
    fields.add("metrics.nearest_every", nearest_every,
               "updates between lines that say how redundant the buffer is; 0: never");
    fields.add("metrics.dense", dense,
               "newest lines of metrics.jsonl that are all kept, older ones are thinned; 0: all");
  }
};

struct Config {
  std::string stream = "synthetic:";
  std::string shapes;  // around the stream, see riffle/stream/shapes/shape.h
  LearnerConfig learner;
  CheckpointConfig checkpoint;
  MetricsConfig metrics;
  double max_hours = 0;  // of one train or resume; 0: no limit

  void describe(Fields& fields);
  // Throws Error for values that make no sense, alone or together.
  void validate() const;
};

// A Config that is being put together: defaults, then files, then assignments; each later one wins.
class ConfigBuilder {
 public:
  ConfigBuilder();
  ConfigBuilder(const ConfigBuilder&) = delete;
  ConfigBuilder& operator=(const ConfigBuilder&) = delete;

  // Nested or dotted keys: "train: {batch: 64}" and "train.batch: 64" are the same. Throws Error
  // naming file and key.
  void read_yaml(const std::filesystem::path& path);
  // The same from text; `name` is what errors call it.
  void read_yaml_text(const std::string& text, const std::string& name);
  void set(const std::string& key, const std::string& value);
  void set_assignment(const std::string& assignment);  // "key=value"

  const Fields& fields() const { return fields_; }
  // The finished, validated configuration.
  Config build() const;

 private:
  Config config_;
  Fields fields_;
  std::set<std::string> given_;
};

// All keys with their values, as YAML that read_yaml takes back; with `help`, each key's meaning as
// a comment.
std::string config_yaml(Config config, bool help = false);

}  // namespace riffle
