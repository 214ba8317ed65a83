// From a study to its runs: the configuration of each.

#include <algorithm>
#include <optional>

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/buffer/memory_plan.h"
#include "riffle/stream/shapes/lifelong.h"
#include "riffle/stream/shapes/shape.h"
#include "riffle/study/study_file.h"
#include "riffle/study/study_yaml.h"

namespace riffle {
namespace {

// Enough for a run to be resumed without losing more than a quarter of it.
constexpr std::int64_t kFewestCheckpoints = 4;

void add_keys(const KeyValues& keys, KeyValues& all) {
  for (const auto& [key, value] : keys) {
    const bool adds = key.ends_with('+');
    const std::string name = adds ? key.substr(0, key.size() - 1) : key;
    const auto found = std::ranges::find(all, name, &KeyValues::value_type::first);
    if (found == all.end()) {
      all.emplace_back(name, value);
    } else if (adds && !found->second.empty()) {
      found->second += cat(',', value);
    } else {
      found->second = value;
    }
  }
}

std::int64_t rounded_up(std::int64_t a, std::int64_t b) { return a / b + (a % b > 0 ? 1 : 0); }

// How many batches a run with a buffer takes from the stream: those that fill it, of which the last
// is followed by the first K updates, then one for every further K.
std::int64_t batches_taken(const Config& config, std::int64_t updates, std::int64_t k) {
  const std::int64_t capacity = parse_capacity(config.learner.buffer.capacity).samples;
  if (capacity == 0) {
    throw Error("without_buffer: same_samples needs a buffer.capacity in samples, not in bytes");
  }
  return rounded_up(capacity, config.learner.train.samples_per_stream_batch()) +
         rounded_up(updates, k) - 1;
}

double group_overlap(const std::string& shapes) {
  for (Uri& shape : parse_shapes(shapes)) {
    if (shape.scheme() == "lifelong") return shape.get_number("overlap", kLifelongOverlap, 0, 0.5);
  }
  return 0;
}

Config configuration(const Study& study, const KeyValues& keys, std::int64_t seed) {
  ConfigBuilder builder;
  for (const auto& [key, value] : keys) {
    builder.set(key, replaced(value, "{seed}", std::to_string(seed)));
  }
  builder.set("run.seed", std::to_string(seed));
  // K belongs to the axes that it is set by; a run without a buffer has none.
  const bool without_buffer = builder.fields().get("buffer.policy") == "none";
  const std::int64_t k = parse_integer(builder.fields().get("train.updates"), "train.updates");
  if (k < 1) throw Error("train.updates must be at least 1");
  if (without_buffer) builder.set("train.updates", "1");
  Config config = builder.build();
  auto& updates = config.learner.train.max_updates;
  if (updates < 1) throw Error("train.max_updates must be set: the runs of a study end");
  if (without_buffer && study.without_buffer == WithoutBuffer::same_samples) {
    updates =
        config.learner.train.drain ? rounded_up(updates, k) : batches_taken(config, updates, k);
  }
  // Probed when the run has ended, so that probing cannot disturb it.
  const std::int64_t points = study.probe.points;
  const std::int64_t checkpoints = points * rounded_up(kFewestCheckpoints, points);
  config.checkpoint.every = std::max<std::int64_t>(1, updates / checkpoints);
  config.checkpoint.keep = updates;
  config.checkpoint.wait = true;
  return config;
}

// One for all runs, so with one seed.
std::shared_ptr<const Config> first_of(const Study& study) {
  if (!study.first) return nullptr;
  KeyValues keys;
  for (const auto* part : {&study.set, &*study.first, &study.overrides}) add_keys(*part, keys);
  try {
    Config config = configuration(study, keys, /*seed=*/0);
    config.checkpoint.keep = 1;
    return std::make_shared<const Config>(std::move(config));
  } catch (const Error& error) {
    throw Error(cat(study.file.string(), ": first: ", error.what()));
  }
}

// The run with these values of the axes; nothing when one of them does without another.
std::optional<StudyRun> run_at(const Study& study, const std::vector<std::size_t>& at,
                               std::int64_t seed, const std::shared_ptr<const Config>& first) {
  StudyRun run;
  run.seed = seed;
  run.order = study.probe.order;
  KeyValues keys;
  add_keys(study.set, keys);
  for (std::size_t i = 0; i < at.size(); ++i) {
    const AxisValue& value = study.axes[i].values[at[i]];
    run.at[study.axes[i].name] = value.name;
    run.slug += cat(value.name, '-');
    add_keys(value.set, keys);
    if (!value.order.empty()) run.order = value.order;
  }
  add_keys(study.overrides, keys);
  run.slug += cat(kSeedAxis, seed);
  for (const auto& axis : study.axes) {
    for (const auto& [other, values] : axis.value(run.at[axis.name]).only) {
      if (std::ranges::count(values, run.at[other]) == 0) return std::nullopt;
    }
  }
  try {
    run.config = configuration(study, keys, seed);
    run.overlap = group_overlap(run.config.shapes);
    // Who gives weights needs none made.
    if (run.config.learner.model.init.empty()) run.first = first;
  } catch (const Error& error) {
    throw Error(cat(study.file.string(), ": run ", run.slug, ": ", error.what()));
  }
  return run;
}

}  // namespace

std::vector<StudyRun> expand(const Study& study) {
  // As a double: the product of many axes is larger than any integer.
  auto most = static_cast<double>(study.seeds.size());
  for (const auto& each : study.axes) most *= static_cast<double>(each.values.size());
  if (most > kMostStudyRuns) {
    throw Error(cat(study.file.string(), ": its axes and seeds make ", most,
                    " runs; a study has at most ", kMostStudyRuns));
  }
  const auto first = first_of(study);
  std::vector<StudyRun> runs;
  for (const std::int64_t seed : study.seeds) {
    std::vector<std::size_t> at(study.axes.size(), 0);
    std::size_t axis = 0;
    do {
      if (auto run = run_at(study, at, seed, first)) runs.push_back(std::move(*run));
      axis = at.size();
      while (axis > 0 && ++at[axis - 1] == study.axes[axis - 1].values.size()) at[--axis] = 0;
    } while (axis > 0);
  }
  return runs;
}

}  // namespace riffle
