#include "riffle/stream/raw/raw.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/stream/testing/picture_folder.h"
#include "riffle/stream/testing/recording.h"

namespace riffle {
namespace {

using testing::HasSubstr;
using testing::Pair;
using testing::ThrowsMessage;
using testing::UnorderedElementsAre;

class Raw : public PictureFolder {
 protected:
  // A file of N bytes 0, 1, 2, ..., read as frames of 4 x 2 px, 24 bytes each.
  std::unique_ptr<Stream> open(int bytes) {
    std::string content;
    for (int i = 0; i < bytes; ++i) content += static_cast<char>(i);
    put_text("film.rgb", content);
    Uri uri(cat("raw:", (folder_ / "film.rgb").string(), "?width=4&height=2"));
    return open_raw(uri);
  }
};

TEST_F(Raw, GivesOneFrameAfterTheOtherAndCountsWhatIsLeftOver) {
  const auto stream = open(3 * 24 + 5);
  const auto recording = record(*stream);
  ASSERT_EQ(recording.samples.size(), 3u);
  EXPECT_EQ(recording.samples[1].picture.width, 4);
  EXPECT_EQ(recording.samples[1].picture.rgb.front(), 24);
  EXPECT_EQ(recording.samples[2].index, 2u);
  EXPECT_THAT(stream->skipped(), UnorderedElementsAre(Pair("truncated", 1)));
}

TEST_F(Raw, GoesOnFromAnyPosition) {
  const auto stream = open(5 * 24);
  const auto recording = record(*stream);
  for (std::size_t at = 0; at < recording.positions.size(); ++at) {
    expect_continues(*stream, recording, at);
  }
}

TEST_F(Raw, RefusesAFileWithoutAFrameAndAPositionBehindItsEnd) {
  EXPECT_THAT([this] { open(23); }, ThrowsMessage<Error>(HasSubstr("23 bytes")));
  EXPECT_THAT([this] { open(24)->seek("2"); }, ThrowsMessage<Error>(HasSubstr("1 frames")));
}

}  // namespace
}  // namespace riffle
