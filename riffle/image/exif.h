// Which way up a camera was held: the EXIF orientation, and turning a picture by it.
#pragma once

#include <cstddef>
#include <span>

#include "riffle/image/picture.h"

namespace riffle {

// The orientation (1 to 8, 1 = upright) in an EXIF block that begins with its TIFF header. Anything
// malformed or missing gives 1; no input makes it read outside `tiff`.
int exif_orientation(std::span<const std::byte> tiff);

// The picture as it is meant to be seen. `orientation` is 1 to 8.
Picture turn_upright(Picture picture, int orientation);

}  // namespace riffle
