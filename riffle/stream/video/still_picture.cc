#include "riffle/stream/video/still_picture.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

extern "C" {
#include <libavcodec/avcodec.h>
}

#include "riffle/base/text.h"
#include "riffle/image/decoding_memory.h"
#include "riffle/image/exif.h"
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

// Returns what FFmpeg cannot decode in a TIFF of this compression, or "". From JPEG, it would make
// a black picture.
std::string unsupported_compression(std::uint32_t compression) {
  // None, fax (three), LZW, deflate (two), packed bits, LZMA.
  static constexpr std::array<std::uint32_t, 9> kDecoded = {1, 2, 3, 4, 5, 8, 32946, 32773, 34925};
  constexpr std::uint32_t kOldJpeg = 6, kJpeg = 7;
  if (compression == kOldJpeg || compression == kJpeg) return "JPEG inside";
  const bool decoded = std::ranges::find(kDecoded, compression) != kDecoded.end();
  return decoded ? "" : cat("compression ", compression);
}

// Returns what FFmpeg cannot decode in a TIFF with such a value of a tag, or "".
std::string unsupported_value(std::uint32_t tag, std::uint32_t value) {
  constexpr std::uint32_t kBits = 258, kCompression = 259, kColours = 262, kTileWidth = 322;
  constexpr std::uint32_t kSampleFormat = 339;
  constexpr std::uint32_t kMostBits = 16, kCielab = 8, kItuLab = 10, kUnsigned = 1, kUntyped = 4;
  if (tag == kBits && value > kMostBits) return cat("samples of ", value, " bits");
  if (tag == kCompression) return unsupported_compression(value);
  if (tag == kColours && value >= kCielab && value <= kItuLab) return "CIELAB colours";
  if (tag == kTileWidth) return "tiles";
  // FFmpeg does not look at it and takes all samples for whole numbers from 0.
  if (tag == kSampleFormat && value != kUnsigned && value != kUntyped) {
    return "samples that are not whole numbers from 0";
  }
  return "";
}

// Asked to report damage, FFmpeg takes a tag that it does not know for damage, and most programs
// write some: an orientation, what the alpha channel means. Leaves only those in the first
// directory that say how pixels are stored, and returns what FFmpeg cannot decode of it, or "".
std::string keep_pixel_tags(std::span<std::uint8_t> tiff) {
  static constexpr std::array<std::uint32_t, 20> kPixelTags = {
      256,  // width
      257,  // height
      258,  // bits of each sample
      259,  // compression
      262,  // colours
      266,  // bit order
      273,  // where the strips are
      277,  // samples of a pixel
      278,  // rows of a strip
      279,  // bytes of the strips
      284,  // planes
      292,  // options of fax 3
      293,  // options of fax 4
      317,  // predictor
      320,  // palette
      322,  // width of a tile
      323,  // height of a tile
      324,  // where the tiles are
      325,  // bytes of the tiles
      530,  // subsampling of the chroma
  };
  constexpr std::uint32_t kByteNumber = 1, kLongNumber = 4;
  constexpr std::size_t kHeader = 8, kEntry = 12, kNext = 4, kInEntry = 4;
  constexpr std::size_t kMostSamples = 5;  // of a pixel, in FFmpeg
  if (tiff.size() < kHeader) return "";
  const bool little = tiff[0] == 'I';
  const auto number = [&](std::size_t at, std::size_t size) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < size; ++i) {
      value = value << 8 | tiff[at + (little ? size - 1 - i : i)];
    }
    return value;
  };
  const std::size_t directory = number(4, 4);
  if (directory > tiff.size() || tiff.size() - directory < 2) return "";
  const std::size_t entries = number(directory, 2);
  const std::size_t first = directory + 2;
  if (tiff.size() - first < entries * kEntry + kNext) return "";
  std::string unsupported;
  // Looks at the first values of an entry, which lie elsewhere unless they fit in.
  const auto check_values = [&](std::size_t entry) {
    const auto type = number(entry + 2, 2);
    const std::size_t size = type == kByteNumber ? 1 : type == kLongNumber ? 4 : 2;
    const std::size_t count = std::min<std::size_t>(number(entry + 4, 4), kMostSamples);
    std::size_t at = entry + 8;
    if (count * size > kInEntry) at = number(at, 4);
    for (std::size_t i = 0; i < count && unsupported.empty(); ++i, at += size) {
      if (at > tiff.size() || tiff.size() - at < size) return;
      unsupported = unsupported_value(number(entry, 2), number(at, size));
    }
  };
  std::size_t kept = 0;
  const auto move_to_kept = [&](std::size_t entry, std::size_t size) {
    std::memmove(&tiff[first + kept * kEntry], &tiff[first + entry * kEntry], size);
  };
  for (std::size_t entry = 0; entry < entries; ++entry) {
    const std::size_t at = first + entry * kEntry;
    check_values(at);
    if (std::ranges::find(kPixelTags, number(at, 2)) == kPixelTags.end()) continue;
    move_to_kept(entry, kEntry);
    ++kept;
  }
  move_to_kept(entries, kNext);  // where the next directory is
  tiff[directory + (little ? 0 : 1)] = static_cast<std::uint8_t>(kept & 0xFF);
  tiff[directory + (little ? 1 : 0)] = static_cast<std::uint8_t>(kept >> 8);
  return unsupported;
}

// An extended WebP says so in its header.
bool is_animated_webp(std::span<const std::byte> bytes) {
  constexpr std::size_t kChunk = 12, kFlags = 20;
  constexpr std::byte kAnimated{2};
  return bytes.size() > kFlags && std::memcmp(bytes.data() + kChunk, "VP8X", 4) == 0 &&
         (bytes[kFlags] & kAnimated) != std::byte{0};
}

// What FFmpeg needs for one picture.
struct StillDecoder {
  AVCodecContext* context = nullptr;
  AVPacket* packet = av_packet_alloc();
  AVFrame* frame = av_frame_alloc();
  std::unique_ptr<DecodingMemory> memory;
  std::string unsupported;  // what is in the file that FFmpeg cannot decode

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
    if (context->codec_id == AV_CODEC_ID_TIFF) {
      unsupported = keep_pixel_tags({packet->data, bytes.size()});
      if (!unsupported.empty()) return false;
    }
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
    if (!large && kind->codec == AV_CODEC_ID_WEBP && is_animated_webp(bytes)) {
      failure = {"unsupported", "an animated WebP"};
    }
    if (!decoder.unsupported.empty()) {
      failure = {"unsupported", cat("a TIFF with ", decoder.unsupported)};
    }
    return std::nullopt;
  }
  // A TIFF begins with what EXIF has its orientation in.
  const int orientation = kind->codec == AV_CODEC_ID_TIFF ? exif_orientation(bytes) : 1;
  // Where a still does not say them, the range is the full one and the matrix that of JPEG,
  // whatever its size.
  AVFrame& frame = *decoder.frame;
  if (frame.color_range == AVCOL_RANGE_UNSPECIFIED) frame.color_range = AVCOL_RANGE_JPEG;
  if (frame.colorspace == AVCOL_SPC_UNSPECIFIED) frame.colorspace = AVCOL_SPC_BT470BG;
  VideoPicture converter;
  auto picture = converter.convert(frame, options.short_side, orientation);
  if (!picture) failure = {"unsupported", cat("a ", kind->name, " with pixels of an unknown kind")};
  return picture;
}

}  // namespace riffle
