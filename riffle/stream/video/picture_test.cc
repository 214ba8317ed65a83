#include "riffle/stream/video/picture.h"

#include <cstddef>
#include <cstring>
#include <utility>

#include <gtest/gtest.h>

extern "C" {
#include <libavutil/frame.h>
#include <libavutil/pixdesc.h>
}

namespace riffle {
namespace {

// Returns the brightness of the picture of a frame whose first plane is full of one byte, scaled or
// not.
int shown_level(AVPixelFormat format, AVColorRange range, int byte, int short_side) {
  AVFrame* frame = av_frame_alloc();
  frame->format = format;
  frame->color_range = range;
  frame->width = 32;
  frame->height = 16;
  EXPECT_EQ(av_frame_get_buffer(frame, 0), 0);
  for (std::size_t plane = 0; plane < 3 && frame->data[plane] != nullptr; ++plane) {
    const int rows = plane == 0 ? frame->height : frame->height / 2;
    std::memset(frame->data[plane], plane == 0 ? byte : 128,
                static_cast<std::size_t>(frame->linesize[plane] * rows));
  }
  VideoPicture converter;
  const auto picture = converter.convert(*frame, short_side, 1);
  av_frame_free(&frame);
  return picture ? picture->at(picture->width / 2, picture->height / 2)[1] : -1;
}

TEST(VideoPicture, GreyThatDoesNotSayItsRangeHasTheFullOne) {
  for (const auto format : {AV_PIX_FMT_GRAY8, AV_PIX_FMT_GRAY16LE, AV_PIX_FMT_YA8}) {
    for (const int short_side : {0, 8}) {
      SCOPED_TRACE(testing::Message() << av_get_pix_fmt_name(format) << " to " << short_side);
      for (const int level : {0, 64, 128, 255}) {
        EXPECT_NEAR(shown_level(format, AVCOL_RANGE_UNSPECIFIED, level, short_side), level, 1);
      }
    }
  }
}

TEST(VideoPicture, OtherwiseTheRangeIsThatOfVideo) {
  for (const auto& [format, range] : {std::pair{AV_PIX_FMT_YUV420P, AVCOL_RANGE_UNSPECIFIED},
                                      std::pair{AV_PIX_FMT_YUV420P, AVCOL_RANGE_MPEG},
                                      std::pair{AV_PIX_FMT_GRAY16LE, AVCOL_RANGE_MPEG}}) {
    EXPECT_NEAR(shown_level(format, range, 16, 0), 0, 1) << av_get_pix_fmt_name(format);
    EXPECT_NEAR(shown_level(format, range, 235, 0), 255, 1) << av_get_pix_fmt_name(format);
  }
}

}  // namespace
}  // namespace riffle
