#include "riffle/stream/source_part.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/base/error.h"

namespace riffle {
namespace {

using testing::ElementsAre;

TEST(SourcePart, IsEveryNthFile) {
  const std::vector<int> all = {0, 1, 2, 3, 4, 5, 6};
  EXPECT_EQ(SourcePart().of(all, "folder:x"), all);
  EXPECT_THAT((SourcePart{0, 3}.of(all, "folder:x")), ElementsAre(0, 3, 6));
  EXPECT_THAT((SourcePart{2, 3}.of(all, "folder:x")), ElementsAre(2, 5));
  EXPECT_THAT((SourcePart{6, 9}.of(all, "folder:x")), ElementsAre(6));
}

TEST(SourcePart, OfFewerFilesThanPartsIsRefusedUnlessThereAreNone) {
  const SourcePart part{7, 9};
  const std::vector<int> few = {0, 1, 2};
  EXPECT_THAT(
      [&] { part.of(few, "folder:x"); },
      testing::ThrowsMessage<Error>(
          "folder:x: part=7/9 has nothing to read: N must be at most 3, the number of files"));
  EXPECT_THAT(part.of(std::vector<int>(), "folder:x"), ElementsAre());
}

TEST(SourcePart, IsReadFromTheAddress) {
  Uri part("folder:x?part=2/3"), none("folder:x");
  EXPECT_EQ(read_part(part).index, 2u);
  EXPECT_EQ(read_part(part).parts, 3u);
  EXPECT_EQ(read_part(none).parts, 1u);
  for (const char* wrong : {"3/3", "-1/2", "1", "a/b", "1/2/3", ""}) {
    Uri uri(std::string("folder:x?part=") + wrong);
    EXPECT_THROW(read_part(uri), Error) << wrong;
  }
}

}  // namespace
}  // namespace riffle
