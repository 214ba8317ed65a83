#include "riffle/study/study_probe.h"

#include <cmath>

#include <torch/torch.h>

#include "riffle/base/error.h"
#include "riffle/base/log.h"
#include "riffle/base/text.h"
#include "riffle/run/checkpoint.h"
#include "riffle/run/metrics_history.h"
#include "riffle/run/saved_buffer.h"

namespace riffle {
namespace {

constexpr std::string_view kUpdateName = "update-";

std::int64_t update_of(const std::string& name) {
  return parse_integer(name.substr(kUpdateName.size()), "checkpoint");
}

Accuracy accuracy_of(const ProbeResult& result) {
  return {result.linear_top1, result.linear_top5, result.knn_top1};
}

LabelledPictures read_pictures(const std::string& uri, const std::string& shapes,
                               std::int64_t samples, int size) {
  const auto stream = open_stream(uri, shapes);
  return collect(*stream, samples, size);
}

at::Tensor rows_with(const std::vector<std::string>& labels, const std::set<std::string>& wanted) {
  std::vector<std::int64_t> rows;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (wanted.contains(labels[i])) rows.push_back(static_cast<std::int64_t>(i));
  }
  return torch::tensor(rows, torch::kInt64);
}

std::vector<std::string> picked(const std::vector<std::string>& labels, const at::Tensor& rows) {
  std::vector<std::string> some;
  for (std::int64_t i = 0; i < rows.size(0); ++i) {
    some.push_back(labels[static_cast<std::size_t>(rows[i].item<std::int64_t>())]);
  }
  return some;
}

std::map<std::string, double> run_values(const RunFolder& folder, const Config& config) {
  const MetricsHistory metrics = read_metrics(folder.metrics());
  double pairs = std::nan("");
  if (const MetricCurve* curve = metrics.find("same_clip_pairs")) {
    double sum = 0;
    for (const double value : curve->values) sum += value;
    pairs = sum / static_cast<double>(curve->values.size());
  }
  const MetricCurve* loss = metrics.find("loss");
  const double updates = loss == nullptr ? std::nan("") : loss->updates.back();
  const double seconds = metrics.last("seconds");
  return {{"same_clip_pairs", pairs},
          {"clips_in_buffer", metrics.last("buffer_clips")},
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
    const std::int64_t wanted = updates * point / points;
    const std::int64_t latest = updates * (2 * point + 1) / (2 * points);
    for (const auto& name : names) {
      if (!name.starts_with(kUpdateName) || name == names.back()) continue;
      const std::int64_t update = update_of(name);
      if (update < wanted || update >= latest) continue;
      chosen.push_back(name);
      break;
    }
  }
  chosen.push_back(names.back());
  return chosen;
}

void StudyProbe::read_sets(int size) {
  if (size_ == size) return;
  sets_.clear();
  group_labels_.clear();
  for (const auto& set : plan_.sets) {
    log_info(cat("reading the probe set ", set.name));
    sets_.push_back({read_pictures(set.train, set.train_shapes, plan_.samples, size),
                     read_pictures(set.val, set.val_shapes, plan_.samples, size)});
  }
  for (const auto& [name, shapes] : plan_.groups) {
    const auto& first = plan_.sets.front();
    const std::string all = first.val_shapes.empty() ? shapes : cat(first.val_shapes, ',', shapes);
    const auto pictures = read_pictures(first.val, all, 0, 1);
    group_labels_[name] = {pictures.labels.begin(), pictures.labels.end()};
  }
  size_ = size;
}

// As in the paper, one classifier tells all classes of the first set apart; a group's accuracy is
// that on its own pictures.
std::map<std::string, Accuracy> StudyProbe::accuracies(Objective& objective,
                                                       RunResult& result) const {
  std::map<std::string, Accuracy> all;
  for (std::size_t i = 0; i < sets_.size(); ++i) {
    const auto& set = sets_[i];
    const auto recipe = linear_recipe(plan_.sets[i].recipe);
    const bool grouped = i == 0 && !group_labels_.empty();
    if (recipe.random_crops && recipe.method == LinearMethod::lars) {
      const auto probed = probe(objective, set.train, set.val, recipe);
      all[plan_.sets[i].name] = accuracy_of(probed);
      result.recipes[plan_.sets[i].name] = probed.recipe;
      for (const auto& [group, labels] : group_labels_) {
        if (!grouped) break;
        const auto rows = rows_with(set.val.labels, labels);
        all[group] = accuracy_of(
            probe(objective, set.train,
                  {set.val.pictures.index_select(0, rows), picked(set.val.labels, rows)}, recipe));
      }
      continue;
    }
    const LabelledFeatures train = embed(objective, set.train);
    const LabelledFeatures val = embed(objective, set.val);
    const auto probed = probe(train, val, recipe);
    all[plan_.sets[i].name] = accuracy_of(probed);
    result.recipes[plan_.sets[i].name] = probed.recipe;
    for (const auto& [group, labels] : group_labels_) {
      if (!grouped) break;
      const auto rows = rows_with(set.val.labels, labels);
      all[group] = accuracy_of(probe(train,
                                     {val.features.index_select(0, rows.to(val.features.device())),
                                      picked(set.val.labels, rows)},
                                     recipe));
    }
  }
  return all;
}

ResultPoint StudyProbe::measure_checkpoint(const RunFolder& folder, const StudyRun& run,
                                           const std::string& name, RunResult& result) const {
  ResultPoint point;
  if (name.starts_with(kUpdateName)) point.update = update_of(name);
  const SavedBuffer buffer(folder, name);
  point.samples_seen = buffer.samples_seen();
  for (const auto& [group, labels] : group_labels_) {
    double count = 0;
    for (const auto& sample : buffer.samples()) count += labels.contains(sample.info.label) ? 1 : 0;
    point.share[group] =
        100 * count / static_cast<double>(std::max<std::size_t>(1, buffer.samples().size()));
  }
  const auto objective = load_objective(run.config, folder.state_file(name));
  objective->to(torch::Device(run.config.learner.device));
  point.accuracy = accuracies(*objective, result);
  return point;
}

RunResult StudyProbe::measure_run(const RunFolder& folder, const StudyRun& run) {
  read_sets(static_cast<int>(run.config.learner.stored_size()));
  const auto names = folder.checkpoint_names();
  if (names.empty() || !names.back().starts_with(kUpdateName)) {
    throw Error(cat("the stream ended before the buffer was full: nothing was learned"),
                ErrorKind::failure);
  }
  RunResult result;
  result.config = config_yaml(run.config);
  result.probe = plan_.text();
  result.order = run.order;
  if (plan_.points > 1) {
    const auto untrained = load_objective(run.config);
    untrained->to(torch::Device(run.config.learner.device));
    ResultPoint start;
    start.accuracy = accuracies(*untrained, result);
    result.points.push_back(std::move(start));
  }
  for (const auto& name :
       evaluation_checkpoints(names, run.config.learner.train.max_updates, plan_.points)) {
    show_progress(cat("probing ", run.slug, " at ", name));
    result.points.push_back(measure_checkpoint(folder, run, name, result));
  }
  finish_progress();
  result.values = run_values(folder, run.config);
  return result;
}

}  // namespace riffle
