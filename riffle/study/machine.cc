#include "riffle/study/machine.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <thread>

#include "riffle/base/text.h"

namespace riffle {
namespace fs = std::filesystem;
namespace {

// Returns what follows the colon of the first line that begins with `key`.
std::string system_line(const fs::path& path, const std::string& key) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    const auto colon = line.find(':');
    if (!line.starts_with(key) || colon == std::string::npos) continue;
    const auto begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return {};
}

}  // namespace

std::string machine_text() {
  std::string text = system_line("/proc/cpuinfo", "model name");
  if (text.empty()) text = "unknown processor";
  text += cat(", ", std::max(1u, std::thread::hardware_concurrency()), " cores");
  std::error_code none;
  for (const auto& card : fs::directory_iterator("/proc/driver/nvidia/gpus", none)) {
    text += cat(", ", system_line(card.path() / "information", "Model"));
  }
  return text;
}

}  // namespace riffle
