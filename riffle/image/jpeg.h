// The JPEG half of codec.h, on libjpeg-turbo.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "riffle/image/codec.h"
#include "riffle/image/picture.h"

namespace riffle {

// Does what decode() does, for bytes that begin like a JPEG. May throw std::bad_alloc. Throws Error
// if libjpeg is not the one that riffle was built for: no JPEG is to blame for that.
std::optional<Picture> decode_jpeg(std::span<const std::byte> bytes, const DecodeOptions& options,
                                   DecodeFailure& failure);

// Throws Error if libjpeg is not the one that riffle was built for. encode_jpeg() does too.
void require_jpeg();

// What libjpeg is told that riffle was built for. Tests make it something else; not thread-safe.
struct JpegBuild {
  int version;
  std::size_t decoder_bytes;
  std::size_t encoder_bytes;
};
JpegBuild& jpeg_build();

}  // namespace riffle
