// For tests: what a pass left.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "riffle/base/file.h"

namespace riffle {

// Returns names and contents of all files below, but for the lock.
inline std::map<std::string, std::string> folder_contents(const std::filesystem::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file() || entry.path().filename() == "curate.lock") continue;
    files[std::filesystem::relative(entry.path(), folder).string()] = read_text(entry.path());
  }
  return files;
}

}  // namespace riffle
