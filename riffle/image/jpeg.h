// The JPEG half of codec.h, on libjpeg-turbo.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "riffle/image/codec.h"
#include "riffle/image/picture.h"

namespace riffle {

// Does what decode() does, for bytes that begin like a JPEG. May throw std::bad_alloc.
std::optional<Picture> decode_jpeg(std::span<const std::byte> bytes, const DecodeOptions& options,
                                   DecodeFailure& failure);

}  // namespace riffle
