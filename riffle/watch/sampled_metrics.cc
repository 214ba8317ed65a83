#include "riffle/watch/sampled_metrics.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include <nlohmann/json.hpp>

#include "riffle/base/file.h"

namespace riffle {
namespace {

constexpr std::uint64_t kShort = 2 << 20;
// Some lines, of at most 2 KiB.
constexpr std::uint64_t kPlace = 8 << 10;
constexpr std::size_t kLinesAtAPlace = 4;

using Values = std::map<std::string, double>;

std::optional<Values> parse_line(std::string_view text) {
  const auto line = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!line.is_object() || !line.contains("update") || !line["update"].is_number()) return {};
  Values values;
  for (const auto& [key, value] : line.items()) {
    if (value.is_number()) values[key] = value.get<double>();
  }
  return values;
}

// Returns whole lines only; the first one of a part is whole if the part begins the file.
std::vector<std::string_view> whole_lines(std::string_view text, bool from_beginning) {
  std::vector<std::string_view> lines;
  std::size_t at = from_beginning ? 0 : text.find('\n') + 1;
  if (!from_beginning && at == 0) return lines;
  for (std::size_t end; (end = text.find('\n', at)) != std::string_view::npos; at = end + 1) {
    lines.push_back(text.substr(at, end - at));
  }
  return lines;
}

std::string read_part(const InputFile& file, std::uint64_t at, std::uint64_t bytes) {
  std::string part(bytes, '\0');
  file.read(at, std::as_writable_bytes(std::span(part)));
  return part;
}

std::vector<Values> parse_lines(std::span<const std::string_view> texts) {
  std::vector<Values> lines;
  for (const auto text : texts) {
    if (auto values = parse_line(text)) lines.push_back(std::move(*values));
  }
  return lines;
}

// Puts the rates of several lines together. Lines take different times, and of a live stream most
// see no batch: so a rate is what changed over the time that it took. That begins with the line
// before them; null: with the first of them.
void set_rates(const Values* before, std::span<const Values> lines, Values& values) {
  const auto took = [](const Values& from, const Values& to, const char* key) {
    const auto begin = from.find(key), end = to.find(key);
    return begin == from.end() || end == to.end() ? std::nan("") : end->second - begin->second;
  };
  if (before == nullptr) {
    before = &lines.front();
    lines = lines.subspan(1);
  }
  if (lines.empty()) return;
  const double seconds = took(*before, lines.back(), "seconds");
  if (!(seconds > 0)) return;
  for (const auto& [rate, count] :
       {std::pair("updates_per_s", "update"), {"samples_per_s", "samples_seen"}}) {
    const double changed = took(*before, lines.back(), count);
    if (changed >= 0) values[rate] = changed / seconds;
  }
  double held = 0;
  for (const Values& line : lines) {
    const auto share = line.find("stream_held_share");
    if (share == line.end()) return;
    held += share->second * took(*before, line, "seconds");
    before = &line;
  }
  values["stream_held_share"] = held / seconds;
}

// Adds the mean of `count` lines from `begin` on as one point.
void add_point(std::span<const std::string_view> texts, std::size_t begin, std::size_t count,
               SampledMetrics& sampled) {
  const std::vector<Values> lines = parse_lines(texts.subspan(begin, count));
  if (lines.empty()) return;
  const auto last = begin > 0 ? parse_line(texts[begin - 1]) : std::nullopt;
  // Parts of a short file overlap, and a file may be rewritten while it is read.
  const double update = lines.back().at("update");
  if (!sampled.updates.empty() && update <= sampled.updates.back()) return;
  std::map<std::string, std::pair<double, int>> sums;
  for (const auto& values : lines) {
    for (const auto& [key, value] : values) {
      sums[key].first += value;
      ++sums[key].second;
    }
  }
  Values means;
  for (const auto& [key, sum] : sums) means[key] = sum.first / sum.second;
  set_rates(last ? &*last : nullptr, lines, means);
  means.erase("update");
  const std::size_t before = sampled.updates.size();
  sampled.updates.push_back(update);
  for (const auto& [key, mean] : means) {
    auto& curve = sampled.curves[key];
    curve.resize(before, std::nan(""));
    curve.push_back(mean);
  }
}

}  // namespace

SampledMetrics sample_metrics(const std::filesystem::path& path, std::size_t points) {
  SampledMetrics sampled;
  if (!std::filesystem::exists(path)) return sampled;
  const InputFile file(path);
  if (file.size() <= kShort) {
    const std::string text = read_part(file, 0, file.size());
    const auto lines = whole_lines(text, true);
    const std::size_t each = std::max<std::size_t>(1, (lines.size() + points - 1) / points);
    for (std::size_t i = 0; i < lines.size(); i += each) {
      add_point(lines, i, std::min(each, lines.size() - i), sampled);
    }
  } else {
    for (std::size_t i = 0; i < points; ++i) {
      const std::uint64_t at = (file.size() - kPlace) / (points - 1) * i;
      const bool newest = i + 1 == points;
      const std::string text = read_part(file, newest ? file.size() - kPlace : at, kPlace);
      const auto lines = whole_lines(text, at == 0);
      // Rates begin with a line before.
      const std::size_t before = at > 0 && lines.size() > 1 ? 1 : 0;
      const std::size_t count = std::min(lines.size() - before, kLinesAtAPlace);
      add_point(lines, newest ? lines.size() - count : before, count, sampled);
    }
  }
  for (auto& [key, curve] : sampled.curves) curve.resize(sampled.updates.size(), std::nan(""));
  return sampled;
}

std::map<std::string, double> newest_metrics(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return {};
  const InputFile file(path);
  const std::uint64_t bytes = std::min(file.size(), kPlace);
  const std::string text = read_part(file, file.size() - bytes, bytes);
  const auto lines = parse_lines(whole_lines(text, bytes == file.size()));
  if (lines.empty()) return {};
  Values newest = lines.back();
  set_rates(nullptr, lines, newest);
  return newest;
}

}  // namespace riffle
