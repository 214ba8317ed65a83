// Which way up a camera was held: the EXIF orientation, and turning a picture by it.
#pragma once

#include <cstddef>
#include <span>

#include "riffle/image/picture.h"

namespace riffle {

// Returns the orientation (1 to 8, 1 = upright) in an EXIF block that begins with its TIFF header,
// or 1 if it is malformed or missing. Never reads outside `tiff`.
int exif_orientation(std::span<const std::byte> tiff);

// Returns the picture as it is meant to be seen. Requires an orientation from 1 to 8.
Picture turn_upright(Picture picture, int orientation);

}  // namespace riffle
