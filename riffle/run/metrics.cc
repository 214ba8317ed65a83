#include "riffle/run/metrics.h"

#include <charconv>
#include <cmath>

#include <nlohmann/json.hpp>

#include "riffle/base/error.h"
#include "riffle/base/log.h"
#include "riffle/base/text.h"

namespace riffle {
namespace {

constexpr std::string_view kLineStart = "{\"update\":";

// Returns the update of a line; nothing if it is not a line of metrics.
std::optional<std::int64_t> update_of(std::string_view line) {
  std::int64_t update = 0;
  if (!line.starts_with(kLineStart) || !line.ends_with('}')) return std::nullopt;
  const auto parsed =
      std::from_chars(line.data() + kLineStart.size(), line.data() + line.size(), update);
  if (parsed.ec != std::errc() || update < 0) return std::nullopt;
  return update;
}

std::string line_of(std::int64_t update,
                    const std::vector<std::pair<std::string, double>>& values) {
  nlohmann::ordered_json line = {{"update", update}};
  for (const auto& [name, value] : values) {
    if (!std::isfinite(value)) {
      line[name] = nullptr;
    } else if (value == std::floor(value) && std::abs(value) < 1e15) {
      line[name] = static_cast<std::int64_t>(value);
    } else {
      line[name] = value;
    }
  }
  return line.dump() + '\n';
}

}  // namespace

MetricsFile::MetricsFile(const std::filesystem::path& path, const Thinning& options,
                         std::int64_t last_update)
    : path_(path), options_(options) {
  if (std::filesystem::exists(path)) rewrite(last_update);
  out_.emplace(path);
}

bool MetricsFile::kept(std::int64_t update, std::int64_t newest, const Thinning& options) {
  const std::int64_t line = options.line_of(update);
  return options.keeps(line, options.line_of(newest) - line);
}

void MetricsFile::rewrite(std::int64_t newest) {
  // A resumed run thins when a run that never stopped does.
  const std::int64_t a_pass = options_.every * options_.dense;
  const std::int64_t thinned_at = a_pass > 0 ? newest / a_pass * a_pass : newest;
  const std::string text = read_text(path_);
  std::string kept_text;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    if (end == std::string::npos) break;
    const auto line = std::string_view(text).substr(at, end - at);
    const auto update = update_of(line);
    if (update && *update <= newest && kept(*update, thinned_at, options_)) {
      kept_text.append(line).push_back('\n');
    }
    at = end + 1;
  }
  if (kept_text == text) return;
  // Cutting off the end needs no room on disk, and a run must be able to continue on a full one.
  if (!text.starts_with(kept_text)) return write_atomically(path_, kept_text);
  AppendFile(path_).cut(kept_text.size());
}

void MetricsFile::thin(std::int64_t newest) {
  try {
    rewrite(newest);
  } catch (const Error& error) {
    log_warning(cat("metrics could not be thinned: ", error.what()));
  }
  // There may be a new file under the name even if the last step, a flush, failed.
  out_.reset();
}

void MetricsFile::write(std::int64_t update,
                        const std::vector<std::pair<std::string, double>>& values) {
  if (!out_) out_.emplace(path_);
  out_->append(line_of(update, values));
  if (options_.dense > 0 && update % (options_.every * options_.dense) == 0) thin(update);
}

void MetricsFile::replace_last(std::int64_t update,
                               const std::vector<std::pair<std::string, double>>& values) {
  const std::string text = read_text(path_);
  const std::size_t end = text.rfind('\n');
  const std::size_t before = end == 0 ? end : text.rfind('\n', end - 1);
  const std::size_t begin = before == std::string::npos ? 0 : before + 1;
  if (end == std::string::npos || update_of(text.substr(begin, end - begin)) != update) {
    return write(update, values);
  }
  // There may be a new file under the name even if the last step, a flush, fails.
  out_.reset();
  write_atomically(path_, text.substr(0, begin) + line_of(update, values));
}

}  // namespace riffle
