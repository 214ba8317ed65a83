#include "riffle/stream/video/still_picture.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string_view>

extern "C" {
#include <libavcodec/avcodec.h>
}

#include "riffle/base/text.h"
#include "riffle/image/decoding_memory.h"
#include "riffle/stream/video/messages.h"
#include "riffle/stream/video/picture.h"

namespace riffle {
namespace {

struct StillKind {
  std::string_view name;
  std::string_view prefix;
  // At byte `at`; both must be there.
  std::string_view mark;
  std::size_t at;
  AVCodecID codec;
};

constexpr std::string_view kTiffLittle("II*\0", 4), kTiffBig("MM\0*", 4);
constexpr std::array kStillKinds = {StillKind{"WebP", "RIFF", "WEBP", 8, AV_CODEC_ID_WEBP},
                                    StillKind{"TIFF", kTiffLittle, "", 0, AV_CODEC_ID_TIFF},
                                    StillKind{"TIFF", kTiffBig, "", 0, AV_CODEC_ID_TIFF},
                                    StillKind{"BMP", "BM", "", 0, AV_CODEC_ID_BMP},
                                    StillKind{"GIF", "GIF87a", "", 0, AV_CODEC_ID_GIF},
                                    StillKind{"GIF", "GIF89a", "", 0, AV_CODEC_ID_GIF}};

const StillKind* still_kind(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()),
                              std::min<std::size_t>(bytes.size(), 16));
  const auto found = std::ranges::find_if(kStillKinds, [&](const StillKind& kind) {
    return text.starts_with(kind.prefix) && text.size() >= kind.at &&
           text.substr(kind.at).starts_with(kind.mark);
  });
  return found == kStillKinds.end() ? nullptr : &*found;
}

// What FFmpeg needs for one picture.
struct StillDecoder {
  AVCodecContext* context = nullptr;
  AVPacket* packet = av_packet_alloc();
  AVFrame* frame = av_frame_alloc();
  std::unique_ptr<DecodingMemory> memory;

  ~StillDecoder() {
    av_frame_free(&frame);
    av_packet_free(&packet);
    avcodec_free_context(&context);
  }

  // Waits for room before the pixels are allocated: only then is their number known.
  static int get_buffer(AVCodecContext* context, AVFrame* frame, int flags) {
    auto& decoder = *static_cast<StillDecoder*>(context->opaque);
    constexpr std::uint64_t kBytesAPixel = 8 + 3;  // FFmpeg's frame at the most, and the picture
    if (!decoder.memory) {
      decoder.memory = std::make_unique<DecodingMemory>(static_cast<std::uint64_t>(frame->width) *
                                                        static_cast<std::uint64_t>(frame->height) *
                                                        kBytesAPixel);
    }
    return avcodec_default_get_buffer2(context, frame, flags);
  }

  bool open(AVCodecID id, std::int64_t max_pixels) {
    const AVCodec* codec = avcodec_find_decoder(id);
    if (codec == nullptr) return false;
    context = avcodec_alloc_context3(codec);
    context->opaque = this;
    context->get_buffer2 = get_buffer;
    context->thread_count = 1;
    context->max_pixels = max_pixels;
    context->err_recognition = AV_EF_EXPLODE;
    return avcodec_open2(context, codec, nullptr) == 0;
  }

  // FFmpeg reads a little beyond the end of what it is given.
  bool decode(std::span<const std::byte> bytes) {
    if (av_new_packet(packet, static_cast<int>(bytes.size())) != 0) return false;
    std::memcpy(packet->data, bytes.data(), bytes.size());
    packet->flags |= AV_PKT_FLAG_KEY;
    if (avcodec_send_packet(context, packet) != 0) return false;
    avcodec_send_packet(context, nullptr);
    return avcodec_receive_frame(context, frame) == 0 && frame->decode_error_flags == 0 &&
           (frame->flags & AV_FRAME_FLAG_CORRUPT) == 0;
  }
};

}  // namespace

bool is_still_picture(std::span<const std::byte> bytes) { return still_kind(bytes) != nullptr; }

std::optional<Picture> decode_still_picture(std::span<const std::byte> bytes,
                                            const DecodeOptions& options, DecodeFailure& failure) {
  const StillKind* kind = still_kind(bytes);
  if (kind == nullptr) {
    failure = {"not a picture", "neither WebP, TIFF, BMP nor GIF"};
    return std::nullopt;
  }
  const VideoMessages quiet;
  StillDecoder decoder;
  if (!decoder.open(kind->codec, options.max_pixels)) {
    failure = {"unsupported", cat("this FFmpeg has no ", kind->name)};
    return std::nullopt;
  }
  if (!decoder.decode(bytes)) {
    const bool large =
        std::int64_t{decoder.context->width} * decoder.context->height > options.max_pixels;
    failure = large ? DecodeFailure{"too large", cat("a ", kind->name)}
                    : DecodeFailure{"corrupt", cat("a ", kind->name, " that cannot be read whole")};
    return std::nullopt;
  }
  VideoPicture converter;
  auto picture = converter.convert(*decoder.frame, options.short_side, /*orientation=*/1);
  if (!picture) failure = {"unsupported", cat("a ", kind->name, " with pixels of an unknown kind")};
  return picture;
}

}  // namespace riffle
