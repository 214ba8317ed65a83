#include "riffle/stream/raw.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/stream/course.h"
#include "riffle/stream/made_folder.h"

namespace riffle {
namespace {

using testing::HasSubstr;
using testing::Pair;
using testing::ThrowsMessage;
using testing::UnorderedElementsAre;

class Raw : public MadeFolder {
 protected:
  // A file of so many bytes 0, 1, 2, ..., read as frames of 4 x 2 px, 24 bytes each.
  std::unique_ptr<Stream> open(int bytes) {
    std::string content;
    for (int i = 0; i < bytes; ++i) content += static_cast<char>(i);
    put_text("film.rgb", content);
    Uri uri(cat("raw:", (root_ / "film.rgb").string(), "?width=4&height=2"));
    return open_raw(uri);
  }
};

TEST_F(Raw, GivesOneFrameAfterTheOtherAndCountsWhatIsLeftOver) {
  const auto stream = open(3 * 24 + 5);
  const auto course = read_course(*stream);
  ASSERT_EQ(course.samples.size(), 3u);
  EXPECT_EQ(course.samples[1].picture.width, 4);
  EXPECT_EQ(course.samples[1].picture.rgb.front(), 24);
  EXPECT_EQ(course.samples[2].index, 2u);
  EXPECT_THAT(stream->skipped(), UnorderedElementsAre(Pair("truncated", 1)));
}

TEST_F(Raw, GoesOnFromAnyPosition) {
  const auto stream = open(5 * 24);
  const auto course = read_course(*stream);
  for (std::size_t at = 0; at < course.positions.size(); ++at) {
    expect_goes_on(*stream, course, at);
  }
}

TEST_F(Raw, RefusesAFileWithoutAFrameAndAPositionBehindItsEnd) {
  EXPECT_THAT([this] { open(23); }, ThrowsMessage<Error>(HasSubstr("23 bytes")));
  EXPECT_THAT([this] { open(24)->seek("2"); }, ThrowsMessage<Error>(HasSubstr("1 frames")));
}

}  // namespace
}  // namespace riffle
