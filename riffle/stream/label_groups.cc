#include "riffle/stream/label_groups.h"

#include "riffle/base/error.h"
#include "riffle/base/file.h"
#include "riffle/base/text.h"

namespace riffle {

LabelGroups::LabelGroups(const std::vector<std::string>& ordered, int groups) : groups_(groups) {
  if (ordered.size() < static_cast<std::size_t>(groups)) {
    throw Error(cat(ordered.size(), " labels cannot make ", groups, " groups"));
  }
  for (std::size_t i = 0; i < ordered.size(); ++i) {
    const auto group = static_cast<int>(i * static_cast<std::size_t>(groups) / ordered.size());
    if (!group_of_.emplace(ordered[i], group).second) {
      throw Error(cat("the label '", ordered[i], "' stands twice in the order of labels"));
    }
  }
}

std::optional<int> LabelGroups::group(const std::string& label) const {
  const auto found = group_of_.find(label);
  if (found == group_of_.end()) return std::nullopt;
  return found->second;
}

std::vector<std::string> read_label_list(const std::filesystem::path& path) {
  std::vector<std::string> labels;
  for (auto& line : split(read_text(path), '\n')) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    line.resize(std::min(line.size(), line.find('\t')));
    if (!line.empty()) labels.push_back(line);
  }
  if (labels.empty()) throw Error(cat(path.string(), " has no label"));
  return labels;
}

}  // namespace riffle
