// Classes in groups of related ones: labels in a meaningful order, cut into equal runs.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace riffle {

class LabelGroups {
 public:
  // Puts label i of n into group i * groups / n. Throws Error if there are fewer labels than
  // groups, or one of them twice.
  LabelGroups(const std::vector<std::string>& ordered, int groups);

  int groups() const { return groups_; }
  // Returns the label's group, counted from 0, or nothing if the label is unknown.
  std::optional<int> group(const std::string& label) const;

 private:
  int groups_;
  std::map<std::string, int> group_of_;
};

// Reads one label per line, up to a tab if there is one; skips empty lines. Throws Error if the
// file cannot be read or has no label.
std::vector<std::string> read_label_list(const std::filesystem::path& path);

}  // namespace riffle
