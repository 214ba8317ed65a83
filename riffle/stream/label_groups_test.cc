#include "riffle/stream/label_groups.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/base/error.h"
#include "riffle/base/file.h"
#include "riffle/base/testing/temp_folder.h"
#include "riffle/base/text.h"

namespace riffle {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(LabelGroups, AreEqualRuns) {
  const LabelGroups groups({"g", "f", "e", "d", "c", "b", "a"}, 3);
  EXPECT_EQ(groups.groups(), 3);
  std::vector<int> runs;
  for (const char* label : {"g", "f", "e", "d", "c", "b", "a"}) {
    runs.push_back(*groups.group(label));
  }
  EXPECT_THAT(runs, ElementsAre(0, 0, 0, 1, 1, 2, 2));
  EXPECT_FALSE(groups.group("h"));
}

TEST(LabelGroups, RefuseTooFewLabelsAndDoubles) {
  EXPECT_THAT(
      [] {
        LabelGroups({"a", "b"}, 3);
      },
      ThrowsMessage<Error>(HasSubstr("2 labels cannot make 3 groups")));
  EXPECT_THAT([] { LabelGroups({"a", "b", "a"}, 2); }, ThrowsMessage<Error>(HasSubstr("'a'")));
}

class LabelList : public TempFolder {};

TEST_F(LabelList, IsReadFromAListOrTheFirstColumnOfATable) {
  const auto path = folder_ / "labels.txt";
  write_atomically(path, "cat\tfelis\r\n\nbig dog\nbird\t\n");
  EXPECT_THAT(read_label_list(path), ElementsAre("cat", "big dog", "bird"));
  write_atomically(path, "\n\n");
  EXPECT_THAT([&] { read_label_list(path); }, ThrowsMessage<Error>(HasSubstr(path.string())));
  std::filesystem::remove(path);
  EXPECT_THROW(read_label_list(path), Error);
}

}  // namespace
}  // namespace riffle
