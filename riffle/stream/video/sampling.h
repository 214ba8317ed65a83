// Which frames of a film become samples, and where one clip ends and the next begins.
//
// Whether a frame is taken depends on its number, its time and the time of the frame before it
// alone, so reading can continue after any frame.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

namespace riffle {

struct VideoSampling {
  std::int64_t stride = 1;  // takes one of every N frames
  double fps = 0;           // most frames per second; 0: all
  double clip = 0;          // seconds after which another clip begins; 0: never
};

class FrameSampler {
 public:
  explicit FrameSampler(const VideoSampling& sampling) : sampling_(sampling) {}

  // Returns whether to take the next frame. Call it for every frame in turn; `seconds` is the time
  // since the beginning of the film.
  bool takes(std::int64_t number, double seconds) {
    if (number % sampling_.stride != 0) return false;
    if (sampling_.fps <= 0) return true;
    const auto period = periods(seconds, 1 / sampling_.fps);
    return std::exchange(last_period_, period) != period;
  }

  // Continues as if the frame at that time had been asked about.
  void continue_after(double seconds) {
    if (sampling_.fps > 0) last_period_ = periods(seconds, 1 / sampling_.fps);
  }

  // Returns the number of the clip in the film.
  std::int64_t cut(double seconds) const {
    return sampling_.clip > 0 ? periods(seconds, sampling_.clip) : 0;
  }

 private:
  // Returns how many periods are over. Containers round times, some of them to milliseconds: a
  // frame that early is on time.
  static std::int64_t periods(double seconds, double period) {
    constexpr double kEarly = 0.001, kMost = 1e15;
    const double over = std::floor((seconds + kEarly) / period);
    // A film may claim any time, even one that is not a number.
    return std::isnan(over) ? 0 : static_cast<std::int64_t>(std::clamp(over, -kMost, kMost));
  }

  VideoSampling sampling_;
  std::optional<std::int64_t> last_period_;
};

}  // namespace riffle
