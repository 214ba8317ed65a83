// The complete configuration of a run: one struct per room, set by YAML files and --set alike.
#pragma once

#include <filesystem>
#include <set>
#include <span>
#include <string>

#include "riffle/base/fields.h"
#include "riffle/train/learner.h"

namespace riffle {

struct CheckpointConfig {
  // Updates; 0: only at the end.
  std::int64_t every = 1000;
  std::int64_t keep = 2;
  // For the disk, so that each checkpoint is of the very update it was due at.
  bool wait = false;

  void describe(Fields& fields) {
    fields.add("checkpoint.every", every, "updates between checkpoints; 0: only at the end");
    fields.add("checkpoint.keep", keep, "the newest checkpoints that are kept");
    fields.add("checkpoint.wait", wait,
               "training waits for the disk rather than have a checkpoint later than it is due");
  }
};

struct MetricsConfig {
  // Updates.
  std::int64_t every = 10;
  // Updates; each time all features in the buffer are compared.
  std::int64_t nearest_every = 1000;
  // Lines; see metrics.h.
  std::int64_t dense = 4096;

  void describe(Fields& fields) {
    fields.add("metrics.every", every, "updates between lines of metrics.jsonl");
    fields.add("metrics.nearest_every", nearest_every,
               "updates between lines that say how redundant the buffer is; 0: never");
    fields.add("metrics.dense", dense,
               "newest lines of metrics.jsonl that are all kept, older ones are thinned; 0: all");
  }
};

// Probes along training (run_probes.h).
struct ProbeConfig {
  // Addresses of labelled streams; empty: no probes.
  std::string train;
  std::string val;
  // Updates.
  std::int64_t every = 5000;
  // Read of each set at the most; 0: all.
  std::int64_t samples = 0;

  void describe(Fields& fields) {
    fields.add("probe.train", train, "labelled stream to fit probes on while the run trains");
    fields.add("probe.val", val, "labelled stream to measure such probes on");
    fields.add("probe.every", every, "updates between probes; there is one at the end too");
    fields.add("probe.samples", samples, "samples read of each of the two at most; 0: all");
  }
};

struct Config {
  std::string stream = "synthetic:";
  // Around the stream; see riffle/stream/shapes/shape.h.
  std::string shapes;
  LearnerConfig learner;
  CheckpointConfig checkpoint;
  MetricsConfig metrics;
  ProbeConfig probe;
  // Of one train or resume; 0: no limit.
  double max_hours = 0;

  void describe(Fields& fields);
  // Throws Error if a value makes no sense, alone or with others.
  void validate() const;
};

// Builds a Config from defaults, presets, files and assignments; each later value wins.
class ConfigBuilder {
 public:
  ConfigBuilder();
  ConfigBuilder(const ConfigBuilder&) = delete;
  ConfigBuilder& operator=(const ConfigBuilder&) = delete;

  // Sets what a preset sets. Throws Error if its name is unknown.
  void use_preset(const std::string& name);
  // Reads a file that the user names; it may be a pipe. Takes nested and dotted keys: "train:
  // {batch: 64}" and "train.batch: 64" are the same. Throws Error, naming file and key.
  void read_yaml(const std::filesystem::path& path);
  // The same from text; `name` is what errors call it.
  void read_yaml_text(const std::string& text, const std::string& name);
  void set(const std::string& key, const std::string& value);
  // "key=value".
  void set_assignment(const std::string& assignment);

  const Fields& fields() const { return fields_; }
  // Returns the finished, validated configuration: every value is printable UTF-8, in addresses of
  // streams by text_address(). Throws Error as Config::validate() does.
  Config build() const;

 private:
  Config config_;
  Fields fields_;
  std::set<std::string> given_;
};

// Returns all keys with their values, as YAML that read_yaml takes back; with `help`, each key's
// meaning as a comment.
std::string config_yaml(Config config, bool help = false);

}  // namespace riffle
