#include "riffle/run/metrics.h"

#include <cmath>

#include <nlohmann/json.hpp>

#include "riffle/base/error.h"
#include "riffle/base/text.h"

namespace riffle {

MetricsFile::MetricsFile(const std::filesystem::path& path)
    : path_(path), out_(path, std::ios::app) {
  if (!out_) throw Error(cat("cannot write ", path.string()), ErrorKind::failure);
}

void MetricsFile::write(const std::vector<std::pair<std::string, double>>& values) {
  nlohmann::ordered_json line;
  for (const auto& [name, value] : values) {
    if (!std::isfinite(value)) {
      line[name] = nullptr;
    } else if (value == std::floor(value) && std::abs(value) < 1e15) {
      line[name] = static_cast<std::int64_t>(value);
    } else {
      line[name] = value;
    }
  }
  out_ << line.dump() + '\n' << std::flush;
  if (!out_) throw Error(cat("cannot write ", path_.string()), ErrorKind::failure);
}

}  // namespace riffle
