#include "riffle/pages/run_page.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/pages/buffer_page.h"
#include "riffle/pages/feature_map.h"
#include "riffle/pages/shown_curves.h"
#include "riffle/report/html_page.h"
#include "riffle/report/line_chart.h"
#include "riffle/run/metrics_history.h"
#include "riffle/run/probe_record.h"
#include "riffle/run/run_folder.h"
#include "riffle/run/saved_buffer.h"
#include "riffle/run/status_file.h"

namespace riffle {
namespace fs = std::filesystem;
namespace {

struct Run {
  std::string name;
  fs::path path;
  Config config;
  // Of the configuration, with their values.
  std::vector<std::pair<std::string, std::string>> keys;
  MetricsHistory metrics;
  std::vector<ProbeRecord> probes;
  // After a stop these are beyond the last line of metrics.
  double updates = 0;
  double samples = std::nan("");
};

std::vector<std::pair<std::string, std::string>> key_values(Config config) {
  Fields fields;
  config.describe(fields);
  std::vector<std::pair<std::string, std::string>> values;
  for (const auto& field : fields.all()) values.emplace_back(field.key, field.get());
  return values;
}

// The folders' names where these tell them apart, their paths otherwise.
std::vector<Run> read_runs(std::span<const fs::path> paths) {
  std::set<std::string> names;
  for (const auto& path : paths) names.insert(fs::weakly_canonical(path).filename().string());
  std::vector<Run> runs;
  for (const auto& path : paths) {
    const auto folder = RunFolder::open(path);
    const Config config = folder.config();
    const std::string name = fs::weakly_canonical(path).filename().string();
    Run run{names.size() == paths.size() ? name : path.string(),
            path,
            config,
            key_values(config),
            read_metrics(folder.metrics()),
            read_probes(folder)};
    if (const MetricCurve* loss = run.metrics.find("loss")) run.updates = loss->updates.back();
    run.samples = run.metrics.last("samples_seen");
    const auto status = read_status(folder);
    if (status && static_cast<double>(status->update) >= run.updates) {
      run.updates = static_cast<double>(status->update);
      run.samples = static_cast<double>(status->samples_used);
    }
    runs.push_back(std::move(run));
  }
  return runs;
}

std::optional<Figure> figure(const ShownCurve& shown, const std::vector<Run>& runs) {
  // A noisy curve is a mean over as many parts of it.
  constexpr std::size_t kSmoothWindows = 60;
  LineChart chart;
  chart.title = shown.title;
  chart.x_label = "updates";
  chart.y_label = shown.label;
  chart.width = 460;  // two side by side
  chart.height = 300;
  bool something = false;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const MetricCurve* curve = runs[i].metrics.find(shown.key);
    if (curve == nullptr) continue;
    const double factor =
        shown.factor *
        (shown.per_batch ? static_cast<double>(runs[i].config.learner.train.batch) : 1.0);
    LineSeries series;
    series.name = runs[i].name;
    series.colour = static_cast<Colour>(i);
    series.x = curve->updates;
    for (const double value : curve->values) {
      series.y.push_back(factor * value);
      something = something || std::abs(value) > shown.least;
    }
    if (shown.smooth) series.y = moving_mean(series.y, series.y.size() / kSmoothWindows);
    chart.series.push_back(std::move(series));
  }
  if (!something) return std::nullopt;
  return Figure{shown.title, chart.svg(), shown.caption};
}

// The accuracies of the probes along training.
std::optional<Figure> probes_figure(const std::string& title, double ProbeRecord::*accuracy,
                                    const std::vector<Run>& runs) {
  LineChart chart;
  chart.title = title;
  chart.x_label = "updates";
  chart.y_label = "top-1 (%)";
  chart.width = 460;
  chart.height = 300;
  std::set<std::string> sets;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    std::map<std::string, LineSeries> by_set;
    for (const auto& probe : runs[i].probes) {
      LineSeries& series = by_set[probe.val];
      series.x.push_back(static_cast<double>(probe.update));
      series.y.push_back(probe.*accuracy);
      sets.insert(probe.val);
    }
    for (auto& [set, series] : by_set) {
      series.name = by_set.size() == 1 ? runs[i].name : cat(runs[i].name, " on ", set);
      series.colour = static_cast<Colour>(i);
      chart.series.push_back(std::move(series));
    }
  }
  if (chart.series.empty()) return std::nullopt;
  const std::vector<std::string> names(sets.begin(), sets.end());
  return Figure{title, chart.svg(), cat("On ", join(names, ", "), ".")};
}

Table runs_table(const std::vector<Run>& runs) {
  Table table;
  table.caption =
      "Loss, collapse gauge (std), same-clip pairs and speed are means over the last tenth of each "
      "run; samples are those seen, clips those in the buffer at the end.";
  table.columns = {{"run"},
                   {"buffer"},
                   {"updates", "", Best::none, true},
                   {"samples", "", Best::none, true},
                   {"loss", "", Best::none, true},
                   {"std", "", Best::none, true},
                   {"pairs", "%", Best::none, true},
                   {"clips", "", Best::none, true},
                   {"images/s", "", Best::none, true},
                   {"minutes", "", Best::none, true}};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto& [name, path, config, keys, metrics, probes, updates, samples] = runs[i];
    const auto value = [&keys = keys](const std::string& key) {
      return std::ranges::find(keys, key, &std::pair<std::string, std::string>::first)->second;
    };
    const std::string policy = value("buffer.policy");
    table.rows.push_back(
        {{Cell::words(name),
          Cell::words(policy == "none" ? policy : cat(policy, "\u00a0", value("buffer.capacity"))),
          Cell::number(updates, 0), Cell::number(samples, 0),
          Cell::number(metrics.late_mean("loss"), 4), Cell::number(metrics.late_mean("std"), 3),
          Cell::number(100 * metrics.late_mean("same_clip_pairs"), 1),
          Cell::number(metrics.last("buffer_clips"), 0),
          Cell::number(
              metrics.late_updates_per_s() * static_cast<double>(config.learner.train.batch), 0),
          Cell::number(metrics.last("seconds") / 60, 1)},
         static_cast<Colour>(i)});
  }
  return table;
}

// The keys that are not the same in all runs.
Table differences(const std::vector<Run>& runs) {
  Table table;
  table.columns.push_back({"key"});
  for (const auto& run : runs) table.columns.push_back({run.name});
  for (std::size_t i = 0; i < runs.front().keys.size(); ++i) {
    const auto& [key, first] = runs.front().keys[i];
    const auto same = [&, i, &value = first](const Run& run) {
      return run.keys[i].second == value;
    };
    if (std::ranges::all_of(runs, same)) continue;
    Row row{{Cell::words(key)}};
    for (const auto& run : runs) {
      const std::string& value = run.keys[i].second;
      row.cells.push_back(Cell::words(value.empty() ? "(empty)" : value));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string lead(const std::vector<Run>& runs) {
  const Config& first = runs.front().config;
  const auto same = [&](const Run& run) {
    return run.config.stream == first.stream && run.config.shapes == first.shapes;
  };
  if (!std::ranges::all_of(runs, same)) return "Learned from different streams.";
  return cat("Learned from ", first.stream, first.shapes.empty() ? "" : cat(" as ", first.shapes),
             ".");
}

// Where features lie: the policy's or, if it keeps none, the encoder's of some samples.
void add_map(SavedBuffer& buffer, const std::string& name, std::vector<Figure>& maps,
             std::vector<PictureFigure>& sheets) {
  constexpr std::size_t kOnMap = 150, kQueries = 8, kNeighbours = 11, kEncoded = 1024;
  at::Tensor features = buffer.features();
  const bool tracked = features.defined();
  const std::size_t size = buffer.samples().size();
  const auto samples = spaced(size, tracked ? size : kEncoded);
  if (!tracked) features = buffer.encoded(samples, at::kCPU);
  std::vector<std::size_t> which;
  for (const auto& found : nearest_neighbours(features, kQueries, kNeighbours)) {
    which.push_back(samples[found.sample]);
    for (const std::size_t row : found.nearest) which.push_back(samples[row]);
  }
  // A row of the sheet is a sample and its neighbours.
  if (which.size() == kQueries * (kNeighbours + 1)) {
    sheets.push_back(buffer_sheet(
        buffer, cat("Neighbours in ", name), which,
        "Each row: a sample, and those whose features are nearest to its, the nearest first."));
  }
  std::string svg = map_svg(buffer, features, samples, kOnMap);
  if (svg.empty()) return;
  maps.push_back({cat("Map of ", name), std::move(svg),
                  "Features by their first two principal components: what lies together looks "
                  "alike to the network."});
}

// What each buffer holds, where there is a checkpoint: a few, evenly spaced. Throws
// DamagedCheckpoint if the newest is damaged.
void add_sheets(HtmlPage& page, const std::vector<Run>& runs) {
  constexpr std::size_t kShown = 24;
  std::vector<PictureFigure> sheets;
  std::vector<Figure> maps;
  for (const auto& run : runs) {
    const auto folder = RunFolder::open(run.path);
    const auto checkpoints = folder.checkpoint_names();
    if (checkpoints.empty()) continue;
    try {
      SavedBuffer buffer(folder);
      const std::size_t size = buffer.samples().size();
      if (size == 0) continue;
      sheets.push_back(spaced_sheet(
          buffer, run.name, kShown,
          cat("Of ", size, " samples at ", buffer.checkpoint(), ", evenly spaced, oldest first.")));
      add_map(buffer, run.name, maps, sheets);
    } catch (const DamagedCheckpoint&) {
      if (folder.checkpoint_names() == checkpoints) throw;
      // A newer one took its place just now.
    } catch (const Error& error) {
      if (folder.checkpoint_names() != checkpoints) continue;  // a newer one's took their place
      page.note(cat("What ", run.name, " keeps cannot be shown: ", error.what()));
    }
  }
  if (sheets.empty()) return;
  page.section("What they keep");
  for (const auto& sheet : sheets) page.picture(sheet);
  for (const auto& map : maps) page.figure(map);
}

void add_warnings(HtmlPage& page, const std::vector<Run>& runs) {
  constexpr double kCollapsed = 0.1;
  for (const auto& run : runs) {
    if (run.metrics.find("loss") == nullptr) {
      page.note(cat(run.name, " has no line of metrics yet: one is written every ",
                    run.config.metrics.every, " updates once the buffer is full."));
    } else if (run.metrics.late_mean("std") < kCollapsed) {
      page.note(cat(run.name, " has collapsed: its features are nearly all the same (gauge ",
                    fixed(run.metrics.late_mean("std"), 3), ")."));
    }
  }
}

}  // namespace

std::string run_page(std::span<const fs::path> paths) {
  const std::vector<Run> runs = read_runs(paths);
  std::vector<std::string> names;
  for (const auto& run : runs) names.push_back(run.name);
  HtmlPage page(runs.size() == 1 ? cat("Run ", names.front()) : cat(runs.size(), " runs compared"),
                lead(runs));
  add_warnings(page, runs);

  page.section(runs.size() == 1 ? "Figures" : "Runs");
  page.table(runs_table(runs));

  std::vector<Figure> figures;
  for (const auto& [title, accuracy] : {std::pair("Linear probe", &ProbeRecord::linear_top1),
                                        std::pair("k-NN probe", &ProbeRecord::knn_top1)}) {
    if (auto drawn = probes_figure(title, accuracy, runs)) figures.push_back(std::move(*drawn));
  }
  for (const auto& shown : shown_curves()) {
    if (auto drawn = figure(shown, runs)) figures.push_back(std::move(*drawn));
  }
  if (!figures.empty()) {
    page.section("Curves");
    page.figures(figures);
  }

  add_sheets(page, runs);

  page.section("Configuration");
  if (runs.size() > 1) {
    const Table table = differences(runs);
    if (table.rows.empty()) {
      page.paragraph("All keys are the same in all runs.");
    } else {
      page.paragraph("Keys in which the runs differ:");
      page.table(table);
    }
  }
  for (const auto& run : runs) {
    page.folded_code(cat("The configuration of ", run.name), config_yaml(run.config));
  }
  page.section("How to get this page");
  std::vector<std::string> words = {"riffle report"};
  for (const auto& path : paths) words.push_back(shell_word(path.string()));
  page.code(join(words, " "));
  page.footer("Made by riffle report.");
  return page.html();
}

}  // namespace riffle
