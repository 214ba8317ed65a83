#include "riffle/pages/buffer_page.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "riffle/base/text.h"
#include "riffle/image/codec.h"
#include "riffle/image/contact_sheet.h"
#include "riffle/report/bar_chart.h"
#include "riffle/report/html_page.h"
#include "riffle/report/line_chart.h"

namespace riffle {
namespace {

constexpr int kColumns = 12;
// In px, of a picture on a contact sheet.
constexpr int kMostCell = 72;
constexpr std::size_t kBins = 24;
constexpr std::size_t kLabelsShown = 6;

// Equal parts of the stream since the oldest sample, in which samples arrived.
class TimeBins {
 public:
  explicit TimeBins(const SavedBuffer& buffer)
      : first_(buffer.samples().front().info.arrival),
        width_(
            std::max(1.0, static_cast<double>(buffer.samples().back().info.arrival - first_ + 1) /
                              static_cast<double>(kBins))) {}

  std::size_t of(const KeptSample& sample) const {
    const auto since = static_cast<double>(sample.info.arrival - first_);
    return std::min(kBins - 1, static_cast<std::size_t>(since / width_));
  }
  std::vector<double> middles() const {
    std::vector<double> x;
    for (std::size_t i = 0; i < kBins; ++i) {
      x.push_back(static_cast<double>(first_) + (static_cast<double>(i) + 0.5) * width_);
    }
    return x;
  }

 private:
  std::uint64_t first_;
  double width_;
};

LineChart chart_over_time(const std::string& title, const std::string& label) {
  LineChart chart;
  chart.title = title;
  chart.x_label = "when they arrived (samples)";
  chart.y_label = label;
  chart.y_low = 0;
  chart.width = 460;
  chart.height = 300;
  return chart;
}

Figure clips_figure(const SavedBuffer& buffer) {
  const TimeBins bins(buffer);
  std::vector<std::set<std::int64_t>> clips(kBins);
  LineSeries samples{"samples", bins.middles(), std::vector<double>(kBins)};
  LineSeries distinct{"clips", bins.middles(), {}};
  for (const auto& sample : buffer.samples()) {
    ++samples.y[bins.of(sample)];
    if (sample.info.clip != kNoClip) clips[bins.of(sample)].insert(sample.info.clip);
  }
  for (const auto& bin : clips) distinct.y.push_back(static_cast<double>(bin.size()));
  const bool any = std::ranges::any_of(distinct.y, [](double count) { return count > 0; });
  LineChart chart = chart_over_time("Samples and clips kept, by arrival", "kept");
  chart.series.push_back(std::move(samples));
  if (any) chart.series.push_back(std::move(distinct));
  return {
      "When it arrived", chart.svg(),
      cat("Of each ", kBins, "th of the stream since the oldest: the samples that are still there",
          any ? ", and the number of their clips." : ".")};
}

// Too many for lines over time: bars, from the most frequent label down.
Figure many_labels_figure(const std::vector<std::pair<std::string, std::int64_t>>& sorted) {
  constexpr std::size_t kBars = 16;
  BarChart chart;
  chart.title = "Samples kept of the most frequent labels";
  chart.label = "samples kept";
  chart.decimals = 0;
  chart.width = 460;
  for (std::size_t i = 0; i < std::min(sorted.size(), kBars); ++i) {
    chart.bars.push_back(
        {.name = sorted[i].first, .value = static_cast<double>(sorted[i].second), .colour = 0});
  }
  return {"Labels", chart.svg(),
          cat("The ", chart.bars.size(), " most frequent of ", sorted.size(), " labels.")};
}

Figure labels_figure(const SavedBuffer& buffer) {
  std::map<std::string, std::int64_t> counts;
  for (const auto& sample : buffer.samples()) {
    if (!sample.info.label.empty()) ++counts[sample.info.label];
  }
  std::vector<std::pair<std::string, std::int64_t>> sorted(counts.begin(), counts.end());
  std::ranges::stable_sort(sorted, std::greater(), &std::pair<std::string, std::int64_t>::second);
  if (sorted.size() > kLabelsShown) return many_labels_figure(sorted);
  const TimeBins bins(buffer);
  LineChart chart = chart_over_time("Samples kept of the most frequent labels, by arrival", "kept");
  for (const auto& [label, count] : sorted) {
    LineSeries series{label, bins.middles(), std::vector<double>(kBins)};
    for (const auto& sample : buffer.samples()) {
      if (sample.info.label == label) ++series.y[bins.of(sample)];
    }
    chart.series.push_back(std::move(series));
  }
  return {"Labels", chart.svg(), cat(counts.size(), " labels.")};
}

Figure nearest_figure(const SavedBuffer& buffer, const std::vector<std::size_t>& order) {
  const double most = std::max(1e-6, buffer.samples()[order.back()].nearest);
  LineSeries series{"samples", {}, std::vector<double>(kBins)};
  for (std::size_t i = 0; i < kBins; ++i) {
    series.x.push_back((static_cast<double>(i) + 0.5) * most / static_cast<double>(kBins));
  }
  for (const std::size_t i : order) {
    const double share = buffer.samples()[i].nearest / most;
    ++series.y[std::min(kBins - 1, static_cast<std::size_t>(share * static_cast<double>(kBins)))];
  }
  LineChart chart;
  chart.title = "Histogram of the distance to the nearest other sample";
  chart.x_label = "cosine distance to the nearest other sample";
  chart.y_label = "samples";
  chart.y_low = 0;
  chart.width = 460;
  chart.height = 300;
  chart.series.push_back(std::move(series));
  return {"How redundant it is", chart.svg(),
          cat("Near 0: there is another one like it. ", order.size(), " of ",
              buffer.samples().size(), " samples have a feature.")};
}

std::int64_t distinct_clips(const SavedBuffer& buffer) {
  std::set<std::int64_t> clips;
  for (const auto& sample : buffer.samples()) {
    if (sample.info.clip != kNoClip) clips.insert(sample.info.clip);
  }
  return std::ssize(clips);
}

}  // namespace

PictureFigure picture_sheet(const std::string& title, const std::vector<Picture>& pictures,
                            const std::string& caption) {
  const int cell = std::min(kMostCell, pictures.empty() ? kMostCell : pictures.front().width);
  return {title,     encode_png(contact_sheet(pictures, kColumns, cell)),
          caption,   title,
          cell < 48, cell < 48 ? 2 : 1};
}

PictureFigure buffer_sheet(SavedBuffer& buffer, const std::string& title,
                           const std::vector<std::size_t>& which, const std::string& caption) {
  return picture_sheet(title, buffer.pictures(which), caption);
}

PictureFigure spaced_sheet(SavedBuffer& buffer, const std::string& title, std::size_t count,
                           const std::string& caption) {
  return buffer_sheet(buffer, title, spaced(buffer.samples().size(), count), caption);
}

std::vector<std::size_t> spaced(std::size_t size, std::size_t count) {
  count = std::min(count, size);
  std::vector<std::size_t> which;
  for (std::size_t i = 0; i < count; ++i) which.push_back(i * size / count);
  return which;
}

std::vector<std::size_t> by_redundancy(const SavedBuffer& buffer) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < buffer.samples().size(); ++i) {
    if (std::isfinite(buffer.samples()[i].nearest)) order.push_back(i);
  }
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return buffer.samples()[i].nearest; });
  return order;
}

std::string buffer_page(SavedBuffer& buffer, const std::string& run, std::size_t pictures) {
  const auto& samples = buffer.samples();
  HtmlPage page(cat("What ", run, " kept"),
                cat("The replay buffer at ", buffer.checkpoint(), ", after ", buffer.samples_seen(),
                    " samples of ", buffer.config().stream, "."));
  if (samples.empty()) {
    page.note("The buffer was still empty.");
    return page.html();
  }
  const auto order = by_redundancy(buffer);
  std::vector<std::pair<std::string, std::string>> facts = {
      {"samples kept", std::to_string(samples.size())},
      {"samples seen", std::to_string(buffer.samples_seen())},
      {"clips", std::to_string(distinct_clips(buffer))}};
  if (!order.empty()) {
    facts.emplace_back("median nearest distance",
                       fixed(samples[order[(order.size() - 1) / 2]].nearest, 3));
  }
  page.facts(facts);

  page.section("Pictures");
  const std::size_t shown = std::min(pictures, samples.size());
  std::vector<std::size_t> which(shown);
  std::iota(which.begin(), which.end(), 0u);
  page.picture(buffer_sheet(buffer, "The oldest", which, "Oldest first."));
  for (std::size_t i = 0; i < shown; ++i) which[i] = samples.size() - 1 - i;
  page.picture(buffer_sheet(buffer, "The newest", which, "Newest first."));
  if (!order.empty()) {
    const auto few = static_cast<std::ptrdiff_t>(std::min(pictures, order.size()));
    page.picture(buffer_sheet(buffer, "The most redundant", {order.begin(), order.begin() + few},
                              "Those whose feature is nearest to another's."));
    page.picture(buffer_sheet(buffer, "The least redundant", {order.rbegin(), order.rbegin() + few},
                              "Those whose feature is farthest from any other."));
  }

  page.section("Figures");
  std::vector<Figure> figures = {clips_figure(buffer)};
  if (std::ranges::any_of(samples, [](const auto& sample) { return !sample.info.label.empty(); })) {
    figures.push_back(labels_figure(buffer));
  }
  if (!order.empty()) figures.push_back(nearest_figure(buffer, order));
  page.figures(figures);
  page.footer("Made by riffle buffer.");
  return page.html();
}

}  // namespace riffle
