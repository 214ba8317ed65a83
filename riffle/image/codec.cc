#include "riffle/image/codec.h"

#include <algorithm>
#include <array>
#include <new>
#include <string_view>

#include "riffle/image/heif.h"
#include "riffle/image/jpeg.h"
#include "riffle/image/png.h"

namespace riffle {
namespace {

bool starts_with(std::span<const std::byte> bytes, std::string_view prefix) {
  return bytes.size() >= prefix.size() &&
         std::equal(prefix.begin(), prefix.end(), bytes.begin(),
                    [](char a, std::byte b) { return static_cast<std::byte>(a) == b; });
}

// Names what the file is: files are often not what their name says, and the log should tell.
std::string what_else(std::span<const std::byte> bytes) {
  struct Kind {
    std::string_view prefix;
    std::string_view name;
  };
  static constexpr std::array kKinds = {
      Kind{"GIF8", "a GIF"},      Kind{"RIFF", "a WebP or other RIFF file"},
      Kind{"BM", "a BMP"},        Kind{"<", "HTML, XML or SVG text"},
      Kind{"%PDF", "a PDF"},      Kind{"\x1f\x8b", "a gzip archive"},
      Kind{"PK", "a zip archive"}};
  for (const auto& kind : kKinds) {
    if (starts_with(bytes, kind.prefix)) return "looks like " + std::string(kind.name);
  }
  return "not a picture of a kind that riffle reads";
}

}  // namespace

std::optional<Picture> decode(std::span<const std::byte> bytes, const DecodeOptions& options,
                              DecodeFailure& failure) {
  if (bytes.empty()) {
    failure = {"empty", "no bytes"};
    return std::nullopt;
  }
  try {
    if (starts_with(bytes, "\xff\xd8\xff")) return decode_jpeg(bytes, options, failure);
    if (starts_with(bytes, "\x89PNG\r\n\x1a\n")) return decode_png(bytes, options, failure);
    if (is_heif(bytes)) return decode_heif(bytes, options, failure);
  } catch (const std::bad_alloc&) {
    failure = {"too large", "no memory for its pixels"};
    return std::nullopt;
  }
  failure = {"not a picture", what_else(bytes)};
  return std::nullopt;
}

}  // namespace riffle
