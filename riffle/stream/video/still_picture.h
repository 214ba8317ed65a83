// Pictures of the kinds that FFmpeg decodes: WebP, TIFF, BMP and GIF, of which the first frame.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "riffle/image/codec.h"

namespace riffle {

// Returns whether the bytes begin like one of these kinds.
bool is_still_picture(std::span<const std::byte> bytes);

// As decode() of codec.h does for JPEG and PNG. Thread-safe.
std::optional<Picture> decode_still_picture(std::span<const std::byte> bytes,
                                            const DecodeOptions& options, DecodeFailure& failure);

}  // namespace riffle
