#include "riffle/watch/watcher.h"

#include <cmath>

#include "riffle/base/clock.h"
#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/run/probe_record.h"
#include "riffle/run/run_folder.h"
#include "riffle/run/status_file.h"
#include "riffle/watch/sampled_metrics.h"
#include "riffle/watch/sheets.h"

namespace riffle {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::json;

constexpr std::size_t kPoints = 400;
constexpr std::size_t kPictures = 24;
// How many times as long as pictures took to prepare they are shown at least.
constexpr int kRest = 99;
// Runs whose results are kept.
constexpr std::size_t kMostKept = 64;

std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Changes when the file does.
std::string stamp_of(const fs::path& path) {
  std::error_code none;
  const auto size = fs::file_size(path, none);
  if (none) return "none";
  const auto time = fs::last_write_time(path, none).time_since_epoch().count();
  return cat(size, '@', time);
}

std::string curves_stamp(const RunFolder& folder) {
  return cat(stamp_of(folder.metrics()), ' ', stamp_of(folder.probes()));
}

Json numbers(const std::vector<double>& values) {
  Json list = Json::array();
  for (const double value : values) {
    // Charts need no more than five digits.
    list.push_back(std::isfinite(value) ? Json(std::stod(cat(value))) : Json());
  }
  return list;
}

}  // namespace

Watcher::Watcher(fs::path folder) : folder_(std::move(folder)) {
  if (!fs::is_directory(folder_)) throw Error(cat(folder_.string(), " is not a folder"));
}

std::optional<FoundRun> Watcher::find(const std::string& id) const {
  for (auto& run : find_runs(folder_)) {
    if (run.id == id) return std::move(run);
  }
  return std::nullopt;
}

// What does not change while a run trains.
Json Watcher::facts(const FoundRun& run) {
  const auto folder = RunFolder::open(run.path);
  const std::string stamp = stamp_of(run.path / "config.yaml");
  {
    const std::lock_guard lock(mutex_);
    const auto known = facts_.find(run.id);
    if (known != facts_.end() && known->second.stamp == stamp) return known->second.json;
  }
  const Config config = folder.config();
  const auto& learner = config.learner;
  const Json json = {
      {"stream", config.shapes.empty() ? config.stream : cat(config.stream, " as ", config.shapes)},
      {"buffer", learner.buffer.policy},
      {"capacity", learner.buffer.is_none() ? "" : learner.buffer.capacity},
      {"batch", learner.train.batch},
      {"max_updates", learner.train.max_updates},
      {"live", learner.train.clock == ClockKind::live}};
  const std::lock_guard lock(mutex_);
  if (facts_.size() > 2 * kMostKept) facts_.clear();
  facts_[run.id] = {stamp, json};
  return json;
}

Json Watcher::described(const FoundRun& run) {
  Json json = {{"id", run.id}, {"name", run.name}};
  try {
    json.update(facts(run));
    const auto folder = RunFolder::open(run.path);
    json["stamp"] = curves_stamp(folder);
    const auto checkpoints = folder.checkpoint_names();
    json["checkpoint"] = checkpoints.empty() ? "" : checkpoints.back();
    Json& newest = json["newest"] = Json::object();
    for (const auto& [key, value] : newest_metrics(folder.metrics())) newest[key] = value;
    json["status"] = nullptr;
    if (const auto status = read_status(folder)) {
      json["status"] = {{"state", status->state},
                        {"age", seconds_since_1970() - status->time},
                        {"update", status->update},
                        {"used", status->samples_used},
                        {"delivered", status->samples_delivered},
                        {"since_sample", status->seconds_since_sample},
                        {"unreachable", status->seconds_unreachable},
                        {"buffer_size", status->buffer_size},
                        {"buffer_capacity", status->buffer_capacity}};
    }
  } catch (const std::exception& error) {
    json["error"] = error.what();
  }
  return json;
}

std::string Watcher::runs() {
  Json runs = Json::array();
  for (const auto& run : find_runs(folder_)) runs.push_back(described(run));
  return text_of({{"folder", folder_.string()}, {"runs", std::move(runs)}});
}

template <typename Make>
std::string Watcher::remembered(std::map<std::string, Kept>& all, const std::string& id,
                                const std::string& stamp, const Make& make) {
  {
    const std::lock_guard lock(mutex_);
    const auto known = all.find(id);
    if (known != all.end() && known->second.stamp == stamp) return known->second.text;
  }
  std::string text;
  try {
    text = text_of(make());
  } catch (const std::exception& error) {
    return text_of({{"error", error.what()}});  // and tries again the next time
  }
  const std::lock_guard lock(mutex_);
  if (all.size() >= kMostKept) all.clear();
  all[id] = {stamp, text};
  return text;
}

std::optional<std::string> Watcher::curves(const std::string& id) {
  const auto run = find(id);
  if (!run) return std::nullopt;
  const auto folder = RunFolder::open(run->path);
  return remembered(curves_, id, curves_stamp(folder), [&] {
    const SampledMetrics sampled = sample_metrics(folder.metrics(), kPoints);
    Json curves = Json::object();
    for (const auto& [key, values] : sampled.curves) curves[key] = numbers(values);
    Json probes = Json::array();
    for (const auto& probe : read_probes(folder)) {
      probes.push_back({{"update", probe.update},
                        {"val", probe.val},
                        {"probe_linear", probe.linear_top1},
                        {"probe_knn", probe.knn_top1}});
    }
    return Json{
        {"updates", sampled.updates}, {"curves", std::move(curves)}, {"probes", std::move(probes)}};
  });
}

std::optional<std::string> Watcher::arrived(const std::string& id) {
  const auto run = find(id);
  if (!run) return std::nullopt;
  const auto folder = RunFolder::open(run->path);
  const std::lock_guard one_at_a_time(picture_mutex_);
  std::string stamp;
  std::error_code none;
  for (const auto& file : fs::directory_iterator(folder.checkpoints(), none)) {
    if (RunFolder::segment_of(file.path())) {
      stamp += cat(file.path().filename(), stamp_of(file.path()));
    }
  }
  return remembered(arrived_, id, stamp, [&] { return arrived_sheet(folder, kPictures); });
}

std::optional<std::string> Watcher::kept(const std::string& id) {
  const auto run = find(id);
  if (!run) return std::nullopt;
  const auto folder = RunFolder::open(run->path);
  const std::lock_guard one_at_a_time(picture_mutex_);
  {
    const std::lock_guard lock(mutex_);
    const auto known = kept_.find(id);
    if (known != kept_.end() && Clock::now() < known->second.stays_until) return known->second.text;
  }
  const auto begun = Clock::now();
  const std::string text = remembered(kept_, id, join(folder.checkpoint_names(), " "),
                                      [&] { return kept_sheets(folder, kPictures); });
  const auto ended = Clock::now();
  const std::lock_guard lock(mutex_);
  const auto known = kept_.find(id);
  if (known != kept_.end()) known->second.stays_until = ended + kRest * (ended - begun);
  return text;
}

}  // namespace riffle
