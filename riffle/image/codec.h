// JPEG and PNG, to and from bytes; HEIC and AVIF from bytes (heif.h).
//
// Whatever is inside (EXIF orientation, CMYK, grey, palette, 16 bits, transparency), what comes out
// of decode() is an upright 8-bit RGB picture. Transparency is dropped: the colour stored below it
// stays. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "riffle/image/picture.h"

namespace riffle {

struct DecodeOptions {
  // A picture far larger than this short side may be decoded at a reduced scale, never below it. 0:
  // full size.
  int short_side = 0;
  // A picture that claims more pixels is refused before memory is allocated for it.
  std::int64_t max_pixels = 100'000'000;
};

// Why a picture could not be decoded: `reason` is one of a few short words fit for counting
// ("empty", "not a picture", "truncated", "corrupt", "too large", "unsupported"), `detail` says
// more.
struct DecodeFailure {
  std::string reason;
  std::string detail;
};

// Returns the picture, or fills `failure` and returns nothing. Never throws for bad content: bad
// input is a part of every stream. A picture of which only a part can be read is a failure.
std::optional<Picture> decode(std::span<const std::byte> bytes, const DecodeOptions& options,
                              DecodeFailure& failure);

// Throw Error for a picture that the format cannot hold.
std::vector<std::byte> encode_png(const Picture& picture);
std::vector<std::byte> encode_jpeg(const Picture& picture, int quality = 90);

}  // namespace riffle
