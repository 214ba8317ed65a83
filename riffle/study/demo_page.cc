#include <algorithm>
#include <cmath>

#include "riffle/base/file.h"
#include "riffle/base/text.h"
#include "riffle/image/codec.h"
#include "riffle/image/contact_sheet.h"
#include "riffle/report/bar_chart.h"
#include "riffle/report/html_page.h"
#include "riffle/report/line_chart.h"
#include "riffle/stream/stream.h"
#include "riffle/study/demo.h"

namespace riffle {
namespace {

constexpr int kCell = 40;          // px of a picture on a contact sheet
constexpr int kSheetColumns = 16;  // of a contact sheet

double spread(const ModeOutcome& mode) {
  if (mode.runs.size() < 2) return std::nan("");
  double squares = 0;
  for (const auto& run : mode.runs)
    squares += std::pow(run.probe.linear_top1 - mode.linear_top1(), 2);
  return std::sqrt(squares / static_cast<double>(mode.runs.size() - 1));
}

Table results_table(const Comparison& comparison) {
  Table table;
  table.caption =
      "Accuracy of a linear and a k-NN classifier on the frozen features; mean over the runs of a "
      "mode.";
  table.columns = {{"mode"},
                   {"linear", "%", Best::highest, true},
                   {"k-NN", "%", Best::highest, true},
                   {"same-clip pairs in a batch", "%", Best::none, true},
                   {"clips in the buffer", "", Best::none, true}};
  const double none = std::nan("");
  table.rows.push_back(
      {{Cell::words("Untrained"), Cell::number(comparison.untrained.linear_top1),
        Cell::number(comparison.untrained.knn_top1), Cell::number(none), Cell::number(none)},
       kNeutralColour,
       true});
  for (std::size_t i = 0; i < comparison.modes.size(); ++i) {
    const auto& mode = comparison.modes[i];
    table.rows.push_back(
        {{Cell::words(mode.title), Cell::number(mode.linear_top1(), 1, spread(mode)),
          Cell::number(mode.knn_top1()), Cell::number(100 * mode.same_clip_pairs()),
          Cell::number(mode.clips_in_buffer(), 0)},
         static_cast<Colour>(i),
         mode.name == "decorrelated"});
  }
  return table;
}

BarChart accuracy_chart(const Comparison& comparison) {
  BarChart chart;
  chart.title = "Linear accuracy of each mode";
  chart.label = "linear top-1 (%)";
  for (std::size_t i = 0; i < comparison.modes.size(); ++i) {
    const auto& mode = comparison.modes[i];
    Bar bar{mode.title, mode.linear_top1(), std::nan(""), {}, static_cast<Colour>(i)};
    for (const auto& run : mode.runs) bar.runs.push_back(run.probe.linear_top1);
    chart.bars.push_back(std::move(bar));
  }
  chart.references.push_back({"untrained", comparison.untrained.linear_top1});
  return chart;
}

// A value over the updates, mean over the runs, a line a mode.
LineChart curve(const Comparison& comparison, const std::string& title, const std::string& label,
                double (*value)(const CurvePoint&)) {
  LineChart chart;
  chart.title = title;
  chart.x_label = "updates";
  chart.y_label = label;
  chart.width = 460;  // two side by side
  chart.height = 300;
  for (std::size_t i = 0; i < comparison.modes.size(); ++i) {
    const auto& mode = comparison.modes[i];
    LineSeries series;
    series.name = mode.title.substr(0, mode.title.find(' '));
    series.colour = static_cast<Colour>(i);
    const auto& first = mode.runs.front().curve;
    for (std::size_t point = 0; point < first.size(); ++point) {
      double sum = 0;
      for (const auto& run : mode.runs)
        sum += value(run.curve[std::min(point, run.curve.size() - 1)]);
      series.x.push_back(static_cast<double>(first[point].update));
      series.y.push_back(sum / static_cast<double>(mode.runs.size()));
    }
    chart.series.push_back(std::move(series));
  }
  return chart;
}

PictureFigure sheet(const std::string& title, const std::vector<Picture>& pictures,
                    const std::string& caption) {
  return {title, encode_png(contact_sheet(pictures, kSheetColumns, kCell)), caption, title, true,
          1};
}

// Every 16th frame of the stream: two rows for each of the first clips.
PictureFigure stream_sheet(const ComparisonPlan& plan) {
  const auto& mode = plan.modes.front();
  const auto stream = open_stream(mode.config.stream, mode.config.shapes);
  std::vector<Picture> pictures;
  constexpr int kEvery = 16;
  while (pictures.size() < 4 * kSheetColumns) {
    auto sample = stream->next();
    if (!sample) break;
    if (sample->index % kEvery == 0) pictures.push_back(std::move(sample->picture));
  }
  return sheet(
      "The stream", pictures,
      cat("Every ", kEvery,
          "th frame, in order. Long clips of one moving object each; the class is the texture of "
          "object and background, never a colour."));
}

}  // namespace

void write_demo_page(const std::filesystem::path& path, const Comparison& comparison,
                     const ComparisonPlan& plan, double seconds) {
  const auto& learner = plan.modes.back().config.learner;
  HtmlPage page("Learning from a stream that never repeats",
                "One small network, trained with SimSiam several times for the same number of "
                "updates on the same kind of "
                "stream. All that differs is what it may remember.");
  page.note(demo_verdict(comparison));
  page.facts({{"updates a run", std::to_string(comparison.modes.front().runs.front().updates)},
              {"runs a mode", std::to_string(plan.repeats)},
              {"samples a buffer holds", learner.buffer.capacity},
              {"took", duration_text(seconds)}});

  page.section("Accuracy");
  page.figure({"", accuracy_chart(comparison).svg(),
               "Bars are means over the runs, dots the runs themselves."});
  page.table(results_table(comparison));
  page.paragraph(
      "The demo's MinRed gives each sample a feature when it arrives, and of the most redundant "
      "pair the newer one leaves. The "
      "paper's MinRed gives features when a sample is first drawn and lets the older one leave; "
      "riffle train does either "
      "(--features, --tie).");
  page.paragraph(cat("Probe: ", comparison.untrained.recipe, " Trained on ",
                     plan.probe_train.labels.size(), " and measured on ",
                     plan.probe_val.labels.size(), " pictures of clips that no run has seen."));

  page.section("Why");
  const std::vector<Figure> figures = {
      {"How much a batch repeats itself",
       curve(comparison, "Same-clip pairs over time", "same-clip pairs in a batch (%)",
             [](const CurvePoint& point) { return 100 * point.same_clip_pairs; })
           .svg(),
       "Share of the pairs in a training batch that come from one clip."},
      {"What a buffer holds",
       curve(comparison, "Clips in the buffer over time", "distinct clips in the buffer",
             [](const CurvePoint& point) { return point.clips_in_buffer; })
           .svg(),
       "Buffers of equal size. MinRed drops the frames that look most like another."},
      {"Loss",
       curve(comparison, "Loss over time", "loss",
             [](const CurvePoint& point) { return point.loss; })
           .svg(),
       "Negative cosine similarity. A low loss is no sign of a good representation: near-equal "
       "frames are easy."},
      {"Collapse gauge",
       curve(comparison, "Standard deviation of the features", "channel std x sqrt(dim)",
             [](const CurvePoint& point) { return point.std; })
           .svg(),
       "1 when features spread over the sphere, 0 when all are the same."}};
  page.figures(figures);

  page.section("Pictures");
  page.picture(stream_sheet(plan));
  for (const auto& mode : comparison.modes) {
    if (mode.name == "conventional") continue;
    page.picture(sheet("Kept at the end: " + mode.title, mode.runs.front().buffer_pictures,
                       cat(mode.runs.front().clips_in_buffer, " clips in ", learner.buffer.capacity,
                           " samples; evenly spaced ones, oldest first.")));
  }

  page.section("How to get this page");
  page.code(cat("riffle demo --seed ", plan.seed));
  for (const auto& mode : plan.modes) {
    if (mode.name == "minred")
      page.folded_code("Configuration of the MinRed runs", config_yaml(mode.config));
  }
  page.footer("Made by riffle demo.");
  write_atomically(path, page.html());
}

}  // namespace riffle
