#include "riffle/stream/file_pattern.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/stream/testing/picture_folder.h"

namespace riffle {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class FilePattern : public PictureFolder {
 protected:
  // Returns the names, in the folder, of what a pattern in it matches.
  std::vector<std::string> matching(const std::string& pattern) const {
    std::vector<std::string> names;
    for (const auto& path : matching_paths((folder_ / pattern).string())) {
      names.push_back(std::filesystem::path(path).lexically_relative(folder_).string());
    }
    return names;
  }
};

TEST_F(FilePattern, MatchesEachFileOnceAndInOrder) {
  for (const auto* name : {"b.tar", "a.tar", "c.txt"}) put_text(name, "");
  EXPECT_THAT(matching("*.tar"), ElementsAre("a.tar", "b.tar"));
  EXPECT_THAT(matching("{b,?,[ab]}.tar"), ElementsAre("a.tar", "b.tar"));
  EXPECT_THAT(matching("d*"), IsEmpty());
}

TEST_F(FilePattern, OfAFileThatExistsIsThatFile) {
  for (const auto* name : {"a[1].tar", "a1.tar"}) put_text(name, "");
  EXPECT_THAT(matching("a[1].tar"), ElementsAre("a[1].tar"));
}

}  // namespace
}  // namespace riffle
