// From a study to its runs: the configuration of each.

#include <algorithm>

#include "riffle/base/error.h"
#include "riffle/base/text.h"
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

// A capacity in bytes fills at a rate that is not known here.
std::int64_t fill_batches(const Config& config) {
  const auto& capacity = config.learner.buffer.capacity;
  if (capacity.find_first_not_of("0123456789") != std::string::npos) return 0;
  return parse_integer(capacity, "buffer.capacity") / config.learner.train.batch;
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
    updates = std::max<std::int64_t>(1, updates / k + fill_batches(config));
  }
  // Probed when the run has ended, so that probing cannot disturb it.
  const std::int64_t points = study.probe.points;
  const std::int64_t checkpoints =
      points * ((kFewestCheckpoints + points - 1) / points);  // a multiple of points
  config.checkpoint.every = std::max<std::int64_t>(1, updates / checkpoints);
  config.checkpoint.keep = updates;
  return config;
}

}  // namespace

std::vector<StudyRun> expand(const Study& study) {
  std::vector<StudyRun> runs;
  std::vector<std::size_t> at(study.axes.size(), 0);
  while (true) {
    StudyRun run;
    KeyValues keys = study.set;
    run.order = study.probe.order;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < at.size(); ++i) {
      const AxisValue& value = study.axes[i].values[at[i]];
      run.at[study.axes[i].name] = value.name;
      names.push_back(value.name);
      add_keys(value.set, keys);
      if (!value.order.empty()) run.order = value.order;
    }
    const bool exists = std::ranges::all_of(study.axes, [&](const StudyAxis& axis) {
      const auto& only = axis.value(run.at[axis.name]).only;
      return std::ranges::all_of(only, [&](const auto& choice) {
        return std::ranges::count(choice.second, run.at[choice.first]) > 0;
      });
    });
    for (std::int64_t seed = 0; exists && seed < study.seeds; ++seed) {
      run.slug = cat(join(names, "-"), "-seed", seed);
      run.seed = seed;
      try {
        run.config = configuration(study, keys, seed);
      } catch (const Error& error) {
        throw Error(cat(study.file.string(), ": run ", run.slug, ": ", error.what()));
      }
      runs.push_back(run);
    }
    std::size_t axis = at.size();
    while (axis > 0 && ++at[axis - 1] == study.axes[axis - 1].values.size()) at[--axis] = 0;
    if (axis == 0) return runs;
  }
}

}  // namespace riffle
