// The JPEG half of codec.h, on libjpeg-turbo.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "riffle/image/codec.h"
#include "riffle/image/picture.h"

namespace riffle {

// Does what decode() does, for bytes that begin like a JPEG. May throw std::bad_alloc. Throws Error
// if libjpeg is not the one that riffle was built for: no JPEG is to blame for that.
std::optional<Picture> decode_jpeg(std::span<const std::byte> bytes, const DecodeOptions& options,
                                   DecodeFailure& failure);

// Returns why the libjpeg that is loaded cannot serve a program that was built for the version and
// with a decoder's struct of this size; empty if it can.
std::string jpeg_mismatch(int version, std::size_t struct_bytes);

}  // namespace riffle
