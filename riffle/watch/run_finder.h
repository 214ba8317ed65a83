// The runs below a folder.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace riffle {

struct FoundRun {
  // Relative to the folder; the folder's own name if it is a run itself.
  std::string name;
  // Sixteen hexadecimal digits, the same as long as the name is.
  std::string id;
  std::filesystem::path path;
};

// Returns at most a thousand runs in `folder` or up to three folders below it, by name. Follows no
// symbolic link, and does not look into runs. Folders that cannot be read are left out.
std::vector<FoundRun> find_runs(const std::filesystem::path& folder);

}  // namespace riffle
