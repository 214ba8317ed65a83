// The page that adds these parts, docs/extending.md, names the lines beside which they are
// registered: they must be there.

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace riffle {
namespace {

const std::string kRoot = RIFFLE_SOURCE_DIR "/";

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(kRoot + path);
  EXPECT_TRUE(file) << path;
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

TEST(Documentation, NamesLinesThatAreThere) {
  int checked = 0;
  std::string path;
  bool in_block = false;
  std::vector<std::string> source;
  auto at = source.begin();
  for (const std::string& line : lines_of("docs/extending.md")) {
    if (line.starts_with("In `")) path = line.substr(4, line.find('`', 4) - 4);
    if (line.starts_with("```")) {
      in_block = line == "```diff";
      if (in_block) at = (source = lines_of(path)).begin();
    } else if (in_block && line.starts_with(" ")) {
      at = std::find(at, source.end(), line.substr(1));
      ASSERT_NE(at, source.end()) << path << " has no line '" << line.substr(1) << "'";
      ++checked;
    }
  }
  EXPECT_EQ(checked, 13);
}

}  // namespace
}  // namespace riffle
