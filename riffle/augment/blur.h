// Gaussian blur of a view, as torchvision's gaussian_blur: a square kernel of odd size, mirrored at
// the borders.
#pragma once

#include <vector>

namespace riffle {

// Returns the kernel size for a view of this side: about a tenth of it, odd, at least 3.
//
// SimSiam blurs with Pillow, whose filter has no kernel size; at its 224 px ours is 23, which holds
// more than 5 sigma of its strongest blur on either side, so that nothing of the Gaussian is lost.
// On smaller views the same sigma in pixels would wipe out what the picture shows; a kernel that
// shrinks with the view, as in SimCLR's recipe, bounds that: at 32 px it is 3.
int blur_kernel_size(int side);

// A tap with less than 2^-kTapBits of the middle one changes a sum of values in [0, 1] by less than
// float's rounding, and is left out.
inline constexpr int kTapBits = 26;

struct BlurScratch {
  std::vector<float> weights;
  std::vector<const float*> taps;
  std::vector<float> row;    // one row with its mirrored ends
  std::vector<float> plane;  // after the horizontal pass
};

// Blurs three planes of height x width in place. Requires both sides above kernel_size / 2 and
// sigma above 0.
void gaussian_blur(float* planes, int height, int width, int kernel_size, float sigma,
                   BlurScratch& scratch);

}  // namespace riffle
