// The PNG half of codec.h, on libpng.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "riffle/image/codec.h"
#include "riffle/image/picture.h"

namespace riffle {

// Does what decode() does, for bytes that begin like a PNG. May throw std::bad_alloc.
std::optional<Picture> decode_png(std::span<const std::byte> bytes, const DecodeOptions& options,
                                  DecodeFailure& failure);

}  // namespace riffle
