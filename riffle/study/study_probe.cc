#include "riffle/study/study_probe.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include <torch/types.h>

#include "riffle/base/error.h"
#include "riffle/base/log.h"
#include "riffle/base/text.h"
#include "riffle/run/checkpoint.h"
#include "riffle/run/metrics_history.h"
#include "riffle/run/saved_buffer.h"
#include "riffle/run/stop_signals.h"
#include "riffle/study/measures.h"
#include "riffle/study/pair_formula.h"
#include "riffle/train/device.h"

namespace riffle {
namespace {

Accuracy accuracy_of(const at::Tensor& hits) {
  const at::Tensor shares = 100 * hits.to(torch::kFloat64).mean(0);
  const auto* values = shares.const_data_ptr<double>();
  return {values[0], values[1], values[2]};
}

std::set<std::string> read_labels(const std::string& uri, const std::string& shapes) {
  std::set<std::string> labels;
  const auto stream = open_stream(uri, shapes);
  while (const auto sample = stream->next()) labels.insert(sample->label);
  return labels;
}

at::Tensor rows_with(const std::vector<std::string>& labels, const std::set<std::string>& wanted) {
  std::vector<std::int64_t> rows;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (wanted.contains(labels[i])) rows.push_back(static_cast<std::int64_t>(i));
  }
  return torch::tensor(rows, torch::kInt64);
}

std::map<std::string, double> run_values(const RunFolder& folder, const Config& config) {
  const MetricsHistory metrics = read_metrics(folder.metrics());
  const auto mean = [&metrics](const std::string& key) {
    const MetricCurve* curve = metrics.find(key);
    return curve == nullptr ? std::nan("") : mean_and_spread(curve->values).mean;
  };
  const MetricCurve* loss = metrics.find("loss");
  const double updates = loss == nullptr ? std::nan("") : loss->updates.back();
  const double seconds = metrics.last("seconds");
  return {
      {"same_clip_pairs", mean("same_clip_pairs")},
      {"same_clip_pairs_formula", mean_and_spread(expected_same_clip_pairs(metrics).values).mean},
      {"clips_in_buffer", metrics.last("buffer_clips")},
      {"buffer_mean_age", metrics.last("buffer_mean_age")},
      {"junk_in_batch", mean("junk_in_batch")},
      {"junk_in_buffer", metrics.last("junk_in_buffer")},
      {"std", metrics.late_mean("std")},
      {"loss", metrics.late_mean("loss")},
      {"seconds", seconds},
      {"images_per_s", updates * static_cast<double>(config.learner.train.batch) / seconds},
      {"updates", updates},
      {"samples_seen", metrics.last("samples_seen")}};
}

}  // namespace

std::vector<std::string> evaluation_checkpoints(const std::vector<std::string>& names,
                                                std::int64_t updates, std::int64_t points) {
  std::vector<std::string> chosen;
  for (std::int64_t point = 1; point < points; ++point) {
    // In units of 1 / points of an update, so that all are whole.
    const auto distance = [&](const std::string& name) {
      return std::abs(RunFolder::update_of(name).value() * points - point * updates);
    };
    const std::string* nearest = nullptr;
    for (const auto& name : names) {
      if (!RunFolder::update_of(name) || name == names.back()) continue;
      if (nearest == nullptr || distance(name) < distance(*nearest)) nearest = &name;
    }
    // Farther away than this, it is another evaluation's.
    if (nearest != nullptr && 2 * distance(*nearest) < updates) chosen.push_back(*nearest);
  }
  chosen.push_back(names.back());
  return chosen;
}

void StudyProbe::open_sets(EncoderInput input) {
  if (input_ == input) return;
  input_ = EncoderInput(0);  // should reading fail, the next run must not take this for whole sets
  sets_.clear();
  groups_.clear();
  untrained_.clear();
  for (const auto& set : plan_.sets) {
    log_info(cat("reading the probe set ", set.name));
    const auto open = [](const std::string& uri, const std::string& shapes) {
      return [uri, shapes] { return open_stream(uri, shapes); };
    };
    sets_.push_back({LabelledSet(open(set.train, set.train_shapes), plan_.samples, input),
                     LabelledSet(open(set.val, set.val_shapes), plan_.samples, input)});
  }
  for (const auto& [name, shapes] : plan_.groups) {
    const auto& first = plan_.sets.front();
    const std::string all = first.val_shapes.empty() ? shapes : cat(first.val_shapes, ',', shapes);
    Group group{read_labels(first.val, all), {}};
    group.rows = rows_with(sets_.front().val.labels(), group.labels);
    groups_[name] = std::move(group);
  }
  input_ = input;
}

// As in the paper, one classifier tells all classes of the first set apart; a group's accuracy is
// that on its own pictures.
std::map<std::string, Accuracy> StudyProbe::accuracies(Objective& objective, RunResult& result) {
  std::map<std::string, Accuracy> all;
  for (std::size_t i = 0; i < sets_.size(); ++i) {
    const std::string& name = plan_.sets[i].name;
    const auto probed =
        probe(objective, sets_[i].train, sets_[i].val, linear_recipe(plan_.sets[i].recipe));
    all[name] = accuracy_of(probed.hits);
    result.recipes[name] = probed.recipe;
    if (i > 0) continue;
    for (const auto& [group, part] : groups_) {
      all[group] = accuracy_of(probed.hits.index_select(0, part.rows));
    }
  }
  return all;
}

// Runs that differ in their buffers begin with the same network.
std::map<std::string, Accuracy> StudyProbe::untrained_accuracies(const Config& config,
                                                                 RunResult& result) {
  Config network;
  network.learner.model = config.learner.model;
  network.learner.seed = config.learner.seed;
  auto& known = untrained_[config_yaml(network)];
  if (known.empty()) {
    const auto objective = load_objective(config);
    objective->to(open_device(config.learner.device));
    known = accuracies(*objective, result);
  }
  return known;
}

ResultPoint StudyProbe::measure_checkpoint(const RunFolder& folder, const StudyRun& run,
                                           const std::string& name, RecentLabels* recent,
                                           RunResult& result) {
  ResultPoint point;
  point.update = RunFolder::update_of(name).value_or(0);
  const SavedBuffer buffer(folder, name);
  point.samples_seen = buffer.samples_seen();
  if (recent != nullptr) {
    point.share = shares(recent->at(point.samples_seen));
  } else {
    std::deque<std::string> labels;
    for (const auto& sample : buffer.samples()) labels.push_back(sample.info.label);
    point.share = shares(labels);
  }
  const auto objective = load_objective(run.config, folder.state_file(name));
  objective->to(open_device(run.config.learner.device));
  point.accuracy = accuracies(*objective, result);
  return point;
}

std::map<std::string, double> StudyProbe::shares(const std::deque<std::string>& labels) const {
  std::map<std::string, double> all;
  for (const auto& [name, group] : groups_) {
    const auto count = std::ranges::count_if(
        labels, [&](const std::string& label) { return group.labels.contains(label); });
    all[name] = 100 * static_cast<double>(count) /
                static_cast<double>(std::max<std::size_t>(1, labels.size()));
  }
  return all;
}

const std::vector<std::int64_t>& StudyProbe::turns_of(const Config& config) {
  const auto [known, is_new] = turns_.try_emplace({config.stream, config.shapes});
  if (is_new) known->second = open_stream(config.stream, config.shapes)->turns();
  return known->second;
}

std::optional<RunResult> StudyProbe::measure_run(const RunFolder& folder, const StudyRun& run) {
  std::atomic<bool> stopped = false;
  const auto stop = [&](const char* why) {
    log_info(cat(why, ": finishing this evaluation"));
    stopped = true;
  };
  const StopSignals signals(stop, 0);
  open_sets(evaluation_input(run.config));
  const auto names = folder.checkpoint_names();
  if (names.empty() || !RunFolder::update_of(names.back())) {
    throw Error(cat("the stream ended before the buffer was full: nothing was learned"),
                ErrorKind::failure);
  }
  RunResult result;
  result.config = config_yaml(run.config);
  result.probe = plan_.text();
  result.order = run.order;
  result.overlap = run.overlap;
  if (!run.order.empty()) result.turns = turns_of(run.config);
  if (plan_.measures_untrained()) {
    ResultPoint start;
    start.accuracy = untrained_accuracies(run.config, result);
    result.points.push_back(std::move(start));
  }
  // Without a buffer, what a buffer would show is what was trained on lately.
  std::unique_ptr<RecentLabels> recent;
  if (!groups_.empty() && run.config.learner.buffer.is_none()) {
    recent = std::make_unique<RecentLabels>(run.config);
  }
  const std::int64_t updates = run.config.learner.train.max_updates;
  for (const auto& name : evaluation_checkpoints(names, updates, plan_.points)) {
    if (stopped) return std::nullopt;
    show_progress(cat("probing ", run.slug, " at ", name));
    result.points.push_back(measure_checkpoint(folder, run, name, recent.get(), result));
  }
  finish_progress();
  result.values = run_values(folder, run.config);
  return result;
}

}  // namespace riffle
