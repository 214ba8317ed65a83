// Changing a picture's size on the way into riffle. Bilinear with antialiasing, as Pillow and torchvision define it.
#pragma once

#include "riffle/image/picture.h"

namespace riffle {

Picture resize(const Picture& picture, int width, int height);

// The short side becomes `size`, then the centre square is cut out: how every picture becomes a buffer slot.
Picture fit_square(Picture picture, int size);

}  // namespace riffle
