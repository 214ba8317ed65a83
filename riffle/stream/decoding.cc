#include "riffle/stream/decoding.h"

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

#ifdef RIFFLE_FFMPEG
#include "riffle/stream/video/still_picture.h"
#endif

namespace riffle {
namespace {

constexpr std::uint64_t kLeastBytes = std::uint64_t{64} << 10;
constexpr int kMaxThreads = 256;
constexpr int kMaxSize = 16384;

int default_threads = static_cast<int>(std::thread::hardware_concurrency());

std::optional<Picture> decode_any(std::span<const std::byte> bytes, const DecodeOptions& options,
                                  DecodeFailure& failure) {
#ifdef RIFFLE_FFMPEG
  if (is_still_picture(bytes)) return decode_still_picture(bytes, options, failure);
#endif
  return decode(bytes, options, failure);
}

void keep_file(std::span<const std::byte> bytes, const Decoding& decoding, Picture& picture) {
  if (!decoding.keep_file) return;
  picture.file = std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end());
}

}  // namespace

void set_decoding_threads(int threads) { default_threads = threads; }

Decoding read_decoding(Uri& uri) {
  Decoding decoding;
  decoding.options.short_side = static_cast<int>(uri.get_integer("size", 0, 0, kMaxSize));
  const int threads = std::clamp(default_threads, 1, kMaxThreads);
  decoding.threads = static_cast<int>(uri.get_integer("threads", threads, 0, kMaxThreads));
  decoding.keep_file = uri.get_bool("original", false);
  return decoding;
}

Decoded decode(std::span<const std::byte> bytes, const Decoding& decoding) {
  Decoded decoded;
  decoded.picture = decode_any(bytes, decoding.options, decoded.failure);
  if (decoded.picture) keep_file(bytes, decoding, *decoded.picture);
  return decoded;
}

Decoded pass_over(std::span<const std::byte> bytes, const Decoding& decoding) {
  Decoded passed;
  keep_file(bytes, decoding, passed.picture.emplace());
  return passed;
}

std::uint64_t weight(const Decoded& decoded) {
  if (!decoded.picture) return kLeastBytes;
  const auto& file = decoded.picture->file;
  return kLeastBytes + decoded.picture->rgb.size() + (file ? file->size() : 0);
}

}  // namespace riffle
