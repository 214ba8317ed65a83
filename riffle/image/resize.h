// Changing a picture's size on the way into riffle. Bilinear with antialiasing, as Pillow and
// torchvision define it: a triangle filter that widens with the reduction. Within one level of
// Pillow's result (which rounds in between).
//
// Thread-safe. An empty picture or a size below 1 is a programming error (std::logic_error).
#pragma once

#include "riffle/image/picture.h"

namespace riffle {

Picture resize(const Picture& picture, int width, int height);

// Returns the square of `side` pixels whose upper left corner is at (x, y), resized to size x size.
// Requires that the square lies within the picture; it need not lie on whole pixels, so that a slow
// camera moves smoothly.
Picture resize_square(const Picture& picture, double x, double y, double side, int size);

// Resizes the short side to `size` and returns the centre square: how every picture becomes a
// buffer slot. Rounds as torchvision's Resize and CenterCrop do. Costs no more than the square,
// however long the other side is.
Picture fit_square(Picture picture, int size);

}  // namespace riffle
