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
  // Label i of n goes into group i * groups / n. Throws Error for fewer labels than groups, or a
  // label that stands twice.
  LabelGroups(const std::vector<std::string>& ordered, int groups);

  int groups() const { return groups_; }
  // Counted from 0. Nothing for a label that has no place.
  std::optional<int> group(const std::string& label) const;

 private:
  int groups_;
  std::map<std::string, int> group_of_;
};

// One label a line, up to a tab if there is one; empty lines do not count. Throws Error when the
// file cannot be read or holds no label.
std::vector<std::string> read_label_list(const std::filesystem::path& path);

}  // namespace riffle
