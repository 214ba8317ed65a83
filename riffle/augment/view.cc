#include "riffle/augment/view.h"

#include <cstddef>
#include <vector>

#include "riffle/augment/blur.h"
#include "riffle/augment/color.h"
#include "riffle/augment/crop_resize.h"
#include "riffle/augment/normalize.h"

namespace riffle {
namespace {

struct Scratch {
  CropScratch crop;
  BlurScratch blur;
  std::vector<float> planes;
};

void apply(Jitter kind, float amount, float* planes, int pixels) {
  switch (kind) {
    case Jitter::brightness:
      return adjust_brightness(planes, pixels, amount);
    case Jitter::contrast:
      return adjust_contrast(planes, pixels, amount);
    case Jitter::saturation:
      return adjust_saturation(planes, pixels, amount);
    case Jitter::hue:
      return adjust_hue(planes, pixels, amount);
  }
}

}  // namespace

void render_view(const std::uint8_t* picture, int picture_width, const ViewPlan& plan, int size,
                 float* out) {
  thread_local Scratch scratch;
  const int pixels = size * size;
  scratch.planes.resize(3 * static_cast<std::size_t>(pixels));
  float* planes = scratch.planes.data();

  // SimSiam flips last. Everything in between treats left and right alike, so it is done where it
  // costs nothing.
  crop_resize(picture, picture_width, plan.crop, plan.flip, size, size, planes, scratch.crop);
  for (int i = 0; i < plan.jitter_count; ++i) {
    const Jitter kind = plan.jitter_order[i];
    apply(kind, plan.jitter_amount[static_cast<int>(kind)], planes, pixels);
  }
  if (plan.grayscale) to_grayscale(planes, pixels);
  if (plan.blur_sigma > 0) {
    gaussian_blur(planes, size, size, blur_kernel_size(size), plan.blur_sigma, scratch.blur);
  }
  normalize_planes(planes, pixels, out);
}

}  // namespace riffle
