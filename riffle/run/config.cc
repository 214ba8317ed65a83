#include "riffle/run/config.h"

#include "riffle/base/error.h"
#include "riffle/base/file.h"
#include "riffle/base/text.h"
#include "riffle/run/presets.h"
#include "riffle/run/yaml.h"
#include "riffle/stream/uri.h"

namespace riffle {

void Config::describe(Fields& fields) {
  fields.add("stream.uri", stream, "where the pictures come from");
  fields.add("stream.shapes", shapes,
             "shapes around the stream, innermost first: clips:length=64,limit:samples=10000");
  fields.add("stream.size", learner.picture_size,
             "side of the stored pictures, px; 0: the views' size");
  fields.add("run.seed", learner.seed, "seed of everything random");
  fields.add("run.device", learner.device, "cpu, cuda (or gpu) or, of several, cuda:1");
  fields.add("run.max_hours", max_hours, "hours after which the run stops, to be resumed; 0: none");
  learner.buffer.describe(fields);
  learner.augment.describe(fields);
  learner.model.describe(fields);
  learner.train.describe(fields);
  checkpoint.describe(fields);
  metrics.describe(fields);
  probe.describe(fields);
}

void Config::validate() const {
  learner.train.validate();
  if (checkpoint.every < 0) throw Error("checkpoint.every must not be negative");
  constexpr std::int64_t kMost = std::int64_t{1} << 30;  // sums and products stay whole numbers
  if (checkpoint.keep < 1) throw Error("checkpoint.keep must be at least 1");
  if (checkpoint.keep > kMost) throw Error(cat("checkpoint.keep must be at most ", kMost));
  if (max_hours < 0) throw Error("run.max_hours must not be negative");
  if (metrics.dense < 0) throw Error("metrics.dense must not be negative");
  if (metrics.every < 1) throw Error("metrics.every must be at least 1");
  if (metrics.dense > kMost || metrics.every > kMost) {
    throw Error(cat("metrics.dense and metrics.every must be at most ", kMost));
  }
  if (metrics.nearest_every < 0) throw Error("metrics.nearest_every must not be negative");
  if (probe.train.empty() != probe.val.empty()) {
    throw Error("probes along training need two sets: --probe-train and --probe-val");
  }
  if (probe.every < 1) throw Error("probe.every must be at least 1");
  if (probe.samples < 0) throw Error("probe.samples must not be negative");
  constexpr std::int64_t kMostPixels = 16384;
  if (learner.picture_size < 0 || learner.picture_size > kMostPixels) {
    throw Error(cat("stream.size must be between 0 (the views' size) and ", kMostPixels,
                    ", but is ", learner.picture_size));
  }
}

ConfigBuilder::ConfigBuilder() { config_.describe(fields_); }

namespace {

// Calls use(key, text) for every leaf of a YAML tree, keys joined by dots.
template <typename Use>
void for_each_leaf(const YAML::Node& node, const std::string& prefix, const Use& use) {
  for (const auto& entry : node) {
    const auto key = prefix + entry.first.as<std::string>();
    if (entry.second.IsMap()) {
      for_each_leaf(entry.second, key + '.', use);
    } else if (entry.second.IsSequence()) {
      std::vector<std::string> items;
      for (const auto& item : entry.second) items.push_back(item.as<std::string>());
      use(key, join(items, ","));
    } else {
      use(key, entry.second.IsNull() ? std::string() : entry.second.as<std::string>());
    }
  }
}

}  // namespace

// What a preset sets counts as not given: it never contradicts what is.
void ConfigBuilder::use_preset(const std::string& name) {
  for (const auto& [key, value] : find_preset(name).values) fields_.set(key, value);
}

void ConfigBuilder::read_yaml(const std::filesystem::path& path) {
  read_yaml_text(read_given_text(path, kMostYamlBytes), path.string());
}

void ConfigBuilder::read_yaml_text(const std::string& text, const std::string& name) {
  try {
    const YAML::Node root = parse_yaml(text);
    if (root.IsNull()) return;
    if (!root.IsMap()) throw Error("it must hold keys and values");
    for_each_leaf(root, "",
                  [this](const std::string& key, const std::string& value) { set(key, value); });
  } catch (const YAML::Exception& error) {
    throw Error(cat(name, ": ", error.what()));
  } catch (const Error& error) {
    throw Error(cat(name, ": ", error.what()));
  }
}

void ConfigBuilder::set(const std::string& key, const std::string& value) {
  fields_.set(key, value);
  given_.insert(key);
}

void ConfigBuilder::set_assignment(const std::string& assignment) {
  fields_.set_assignment(assignment);
  given_.insert(assignment.substr(0, assignment.find('=')));
}

namespace {

// What is not text would not come back from config.yaml and from checkpoints as it was. Addresses
// have a way to write it.
void make_text(Config& config) {
  for (std::string* address :
       {&config.stream, &config.shapes, &config.probe.train, &config.probe.val}) {
    *address = text_address(*address);
  }
  Fields fields;
  config.describe(fields);
  for (const auto& field : fields.all()) {
    if (printable(field.get()) == field.get()) continue;
    throw Error(cat(field.key, " must be UTF-8 without control characters, not '", field.get(),
                    "'; give the file another name"));
  }
}

}  // namespace

Config ConfigBuilder::build() const {
  Config config = config_;
  make_text(config);
  if (config.learner.buffer.is_none()) {
    if (given_.contains("train.updates") && config.learner.train.updates != 1) {
      throw Error(cat("without a buffer each batch is used once: --updates ",
                      config.learner.train.updates, " contradicts --buffer none"));
    }
    config.learner.train.updates = 1;
  }
  config.validate();
  return config;
}

std::string config_yaml(Config config, bool help) {
  Fields fields;
  config.describe(fields);
  std::string yaml;
  std::string room;
  for (const auto& field : fields.all()) {
    const auto dot = field.key.find('.');
    if (field.key.substr(0, dot) != room) {
      room = field.key.substr(0, dot);
      yaml += room + ":\n";
    }
    if (help) {
      yaml += cat("  # ", field.help);
      if (!field.choices.empty()) yaml += cat(" (", join(field.choices, ", "), ")");
      yaml += '\n';
    }
    YAML::Emitter value;
    value << field.get();
    yaml += cat("  ", field.key.substr(dot + 1), ": ", value.c_str(), '\n');
  }
  return yaml;
}

}  // namespace riffle
