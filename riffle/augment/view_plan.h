// The random decisions about one view, as plain data.
//
// A plan is a pure function of (configuration, picture's size, seed, position), and drawing one is
// the only use of random numbers in this room: every device that carries out a plan makes the same
// view. It is trivially copyable, without pointers. Drawing one costs well under a microsecond.
#pragma once

#include <cstdint>

#include "riffle/augment/augment_config.h"

namespace riffle {

// Views that training makes of each picture.
inline constexpr std::int64_t kViews = 2;

// In pixels of the picture.
struct CropBox {
  std::int32_t top = 0;
  std::int32_t left = 0;
  std::int32_t height = 0;
  std::int32_t width = 0;
};

enum class Jitter : std::uint8_t { brightness, contrast, saturation, hue };

struct ViewPlan {
  CropBox crop;
  // Indexed by Jitter: three factors and the shift of the hue.
  float jitter_amount[4] = {1, 1, 1, 0};
  // The first jitter_count are done, in this order.
  Jitter jitter_order[4] = {};
  std::uint8_t jitter_count = 0;
  bool flip = false;
  bool grayscale = false;
  float blur_sigma = 0;  // 0: no blur
};

// Where the pictures of a part of a batch stand in the whole one: a run of places, then another.
struct BatchPlaces {
  std::int64_t first = 0;  // of the first run
  std::int64_t count = 0;  // places in the first run
  std::int64_t rest = 0;   // where the second run begins

  std::int64_t of(std::int64_t picture) const {
    return picture < count ? first + picture : rest + picture - count;
  }
};

// Returns the position in the sequence of random numbers of one view of one place in the batch of
// one step. No two share one: 2^43 steps, 2^20 places, two views. Throws std::out_of_range beyond
// these.
std::uint64_t view_position(std::uint64_t step, std::int64_t place, int view);

// Draws a plan. Requires a valid `config`. The numbers are drawn in a fixed layout, so that
// switching one operation off leaves the decisions about the others as they were.
ViewPlan plan_view(const AugmentConfig& config, int picture_height, int picture_width,
                   std::uint64_t seed, std::uint64_t position);

}  // namespace riffle
