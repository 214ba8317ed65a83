#include "riffle/stream/video/picture.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

extern "C" {
#include <libavutil/frame.h>
#include <libavutil/mem.h>
#include <libavutil/pixdesc.h>
#include <libswscale/swscale.h>
}

#include "riffle/image/exif.h"

namespace riffle {
namespace {

struct Size {
  int width, height;
  bool operator==(const Size&) const = default;
};

Size scaled(const AVFrame& frame, int short_side) {
  const std::int64_t shorter = std::min(frame.width, frame.height);
  if (short_side <= 0 || shorter <= short_side) return {frame.width, frame.height};
  const auto scale = [&](int side) {
    return static_cast<int>((std::int64_t{side} * short_side + shorter / 2) / shorter);
  };
  return {scale(frame.width), scale(frame.height)};
}

// A film may claim what FFmpeg's enumerations do not have, and C++ must not read as one of them.
template <typename Enumeration>
int claimed(const Enumeration& value) {
  int number;
  static_assert(sizeof(number) == sizeof(value));
  std::memcpy(&number, &value, sizeof(number));
  return number;
}

// Films that do not say which matrix their colours were made with follow the habit of their size.
int colour_matrix(const AVFrame& frame) {
  constexpr int kLeastHeightOfHd = 720;
  const int matrix = claimed(frame.colorspace);
  if (matrix == AVCOL_SPC_UNSPECIFIED || matrix == AVCOL_SPC_RGB) {
    return frame.height >= kLeastHeightOfHd ? SWS_CS_ITU709 : SWS_CS_ITU601;
  }
  return matrix;
}

// A range that is not said is the limited one for colours, and the full one for grey.
bool has_full_range(const AVFrame& frame) {
  const int range = claimed(frame.color_range);
  const auto* kind = av_pix_fmt_desc_get(static_cast<AVPixelFormat>(frame.format));
  const bool is_grey = kind != nullptr && kind->nb_components <= 2;
  if (range == AVCOL_RANGE_UNSPECIFIED && is_grey) return true;
  return range == AVCOL_RANGE_JPEG || frame.format == AV_PIX_FMT_YUVJ420P ||
         frame.format == AV_PIX_FMT_YUVJ422P || frame.format == AV_PIX_FMT_YUVJ444P ||
         frame.format == AV_PIX_FMT_YUVJ440P;
}

}  // namespace

int video_orientation(std::span<const std::int32_t, 9> display_matrix) {
  // A pixel at (x, y) is shown at (a x + c y, b x + d y), but for a shift.
  const auto [a, b, c, d] =
      std::array{display_matrix[0], display_matrix[1], display_matrix[3], display_matrix[4]};
  if (b == 0 && c == 0) {
    if (a > 0 && d > 0) return 1;
    if (a < 0 && d > 0) return 2;
    if (a < 0 && d < 0) return 3;
    if (a > 0 && d < 0) return 4;
  }
  if (a == 0 && d == 0) {
    if (b > 0 && c > 0) return 5;
    if (b > 0 && c < 0) return 6;
    if (b < 0 && c < 0) return 7;
    if (b < 0 && c > 0) return 8;
  }
  return 1;
}

struct VideoPicture::Scaler {
  // What the context was made for.
  struct Kind {
    int width, height, format, matrix;
    bool full_range;
    Size size;
    bool operator==(const Kind&) const = default;
  };

  SwsContext* context = nullptr;
  std::optional<Kind> kind;
  // libswscale writes whole vectors, also past the end of a line.
  std::uint8_t* lines = nullptr;
  std::size_t lines_size = 0;

  ~Scaler() {
    sws_freeContext(context);
    av_free(lines);
  }

  bool prepare(const Kind& wanted) {
    if (kind == wanted) return true;
    kind.reset();
    sws_freeContext(context);
    context = sws_getContext(wanted.width, wanted.height, static_cast<AVPixelFormat>(wanted.format),
                             wanted.size.width, wanted.size.height, AV_PIX_FMT_RGB24,
                             SWS_BILINEAR | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT | SWS_BITEXACT,
                             nullptr, nullptr, nullptr);
    if (context == nullptr) return false;
    constexpr int kNeutral = 1 << 16;
    sws_setColorspaceDetails(context, sws_getCoefficients(wanted.matrix), wanted.full_range,
                             sws_getCoefficients(SWS_CS_DEFAULT), 1, 0, kNeutral, kNeutral);
    kind = wanted;
    return true;
  }
};

VideoPicture::VideoPicture() : scaler_(std::make_unique<Scaler>()) {}
VideoPicture::~VideoPicture() = default;

std::optional<Picture> VideoPicture::convert(const AVFrame& frame, int short_side,
                                             int orientation) {
  constexpr int kChannels = 3, kAlignment = 64;
  const Size size = scaled(frame, short_side);
  if (!scaler_->prepare({frame.width, frame.height, frame.format, colour_matrix(frame),
                         has_full_range(frame), size})) {
    return std::nullopt;
  }

  const int line = (size.width * kChannels + kAlignment - 1) / kAlignment * kAlignment;
  const auto needed = static_cast<std::size_t>(line) * static_cast<std::size_t>(size.height + 1);
  if (needed > scaler_->lines_size) {
    av_freep(&scaler_->lines);
    scaler_->lines = static_cast<std::uint8_t*>(av_malloc(needed));
    scaler_->lines_size = scaler_->lines == nullptr ? 0 : needed;
    if (scaler_->lines == nullptr) return std::nullopt;
  }
  // libswscale reads four of each, however many planes a format has.
  const std::array<std::uint8_t*, 4> planes = {scaler_->lines};
  const std::array<int, 4> strides = {line};
  if (sws_scale(scaler_->context, frame.data, frame.linesize, 0, frame.height, planes.data(),
                strides.data()) != size.height) {
    return std::nullopt;
  }
  Picture picture(size.width, size.height);
  for (int y = 0; y < size.height; ++y) {
    std::memcpy(picture.at(0, y), scaler_->lines + static_cast<std::ptrdiff_t>(line) * y,
                static_cast<std::size_t>(size.width) * kChannels);
  }
  return turn_upright(std::move(picture), orientation);
}

}  // namespace riffle
