#include "riffle/stream/shapes/throttle.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

namespace riffle {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kCatchUp = std::chrono::milliseconds(100);

class ThrottleStream : public Shape {
 public:
  ThrottleStream(std::unique_ptr<Stream> below, double rate)
      : Shape(std::move(below)),
        period_(
            std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(1 / rate))) {}

  std::optional<Sample> next() override {
    {
      std::unique_lock lock(mutex_);
      if (wake_.wait_until(lock, due_, [this] { return ended_; })) return std::nullopt;
    }
    auto sample = below().next();
    if (sample) due_ = std::max(due_, Clock::now() - kCatchUp) + period_;
    return sample;
  }

  bool divide(const StreamShare& share) override { return below().divide(share); }
  std::optional<std::int64_t> period() const override { return below().period(); }
  // The clock starts again wherever the stream continues, so the place is that of the stream below.
  std::string position() const override { return below().position(); }
  void seek(const std::string& position) override { below().seek(position); }

  void stop() override {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    wake_.notify_all();
    Shape::stop();
  }

 private:
  const Clock::duration period_;
  Clock::time_point due_ = Clock::now();
  std::mutex mutex_;
  std::condition_variable wake_;
  bool ended_ = false;
};

}  // namespace

std::unique_ptr<Stream> shape_throttle(Uri& options, const StreamFactory& below) {
  // From one a day to more than a clock can tell apart.
  const double rate = options.get_number("rate", 1, 1e-5, 1e9);
  options.refuse_unknown();
  options.require("rate", "throttle:rate=30");
  return std::make_unique<ThrottleStream>(below(), rate);
}

}  // namespace riffle
