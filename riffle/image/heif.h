// HEIC and AVIF, decoded with libheif where riffle is built with it.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "riffle/image/codec.h"

namespace riffle {

// Returns whether the bytes begin like a file of these kinds.
bool is_heif(std::span<const std::byte> bytes);

// As decode() does. Without libheif every picture is a failure that says what to install.
std::optional<Picture> decode_heif(std::span<const std::byte> bytes, const DecodeOptions& options,
                                   DecodeFailure& failure);

}  // namespace riffle
