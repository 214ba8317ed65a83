// metrics.jsonl: one JSON object a line, in the order things happened.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace riffle {

class MetricsFile {
 public:
  // Appends to `path`. Throws Error when it cannot be opened.
  explicit MetricsFile(const std::filesystem::path& path);

  // One line, handed to the system at once, so that a reader or a crash never meets half of it. A
  // value that is not finite is written as null.
  void write(const std::vector<std::pair<std::string, double>>& values);

 private:
  std::filesystem::path path_;
  std::ofstream out_;
};

}  // namespace riffle
