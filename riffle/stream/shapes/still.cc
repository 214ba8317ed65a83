#include "riffle/stream/shapes/still.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "riffle/base/error.h"
#include "riffle/base/name_hash.h"
#include "riffle/base/random.h"
#include "riffle/base/text.h"
#include "riffle/stream/shapes/shape_position.h"

namespace riffle {
namespace {

constexpr float kSensorNoise = 2;  // standard deviation, levels of 255

struct StillOptions {
  std::int64_t length = 0;
  double share = 0;
  std::uint64_t seed = 0;

  // That the camera stands still after a picture: of 1 + chance * length samples, chance * length
  // are then frames of a camera that stands still.
  double chance() const { return share / ((1 - share) * static_cast<double>(length)); }
};

void add_sensor_noise(Picture& picture, Random random) {
  for (auto& value : picture.rgb) {
    const float noisy = static_cast<float>(value) + kSensorNoise * random.normal();
    value = static_cast<std::uint8_t>(std::lround(std::clamp(noisy, 0.0f, 255.0f)));
  }
}

class StillStream : public Shape {
 public:
  StillStream(std::unique_ptr<Stream> below, const StillOptions& options)
      : Shape(std::move(below)), options_(options) {}

  std::optional<Sample> next() override {
    if (left_ > 0) {
      if (!picture_ && !load()) return std::nullopt;
      return repeated();
    }
    if (!stands_still()) {
      auto sample = below().next();
      if (!sample) return std::nullopt;
      ++seen_;
      return numbered(std::move(*sample));
    }
    before_ = below().position();
    if (!load()) return std::nullopt;
    ++seen_;
    left_ = options_.length;
    return numbered(*picture_);
  }

  // Where it stands still, the picture is found again by the place before it.
  std::string position() const override {
    return write_position("still",
                          {{given_, seen_, left_}, {left_ > 0 ? before_ : below().position()}});
  }

  void seek(const std::string& position) override {
    const auto read = read_position("still", position, 3, 1);
    below().seek(read.below[0]);
    before_ = read.below[0];
    given_ = read.numbers[0];
    seen_ = read.numbers[1];
    left_ = read.numbers[2];
    picture_.reset();
  }

 private:
  // At the picture that comes next from below.
  bool stands_still() const {
    Random random(options_.seed, Purpose("still"), static_cast<std::uint64_t>(seen_));
    return random.chance(static_cast<float>(options_.chance()));
  }

  bool load() {
    picture_ = below().next();
    if (picture_ && picture_->clip == kNoClip) {
      picture_->clip = stable_number(picture_->key);
    }
    return picture_.has_value();
  }

  Sample repeated() {
    Sample sample = *picture_;
    sample.picture.file.reset();
    add_sensor_noise(sample.picture, Random(options_.seed, Purpose("sensor noise"),
                                            static_cast<std::uint64_t>(given_)));
    sample.key += cat(" still ", options_.length - left_);
    if (--left_ == 0) picture_.reset();
    return numbered(std::move(sample));
  }

  Sample numbered(Sample sample) {
    sample.index = static_cast<std::uint64_t>(given_++);
    return sample;
  }

  const StillOptions options_;
  std::int64_t given_ = 0;
  std::int64_t seen_ = 0;          // taken from below
  std::int64_t left_ = 0;          // frames before the camera moves again
  std::optional<Sample> picture_;  // that it shows meanwhile
  std::string before_;             // the place below before it
};

}  // namespace

std::unique_ptr<Stream> shape_still(Uri& options, const StreamFactory& below) {
  constexpr double kMostStill = 0.99;
  StillOptions read;
  read.length = options.get_integer("length", 512, 1, std::int64_t{1} << 40);
  read.share = options.get_number("share", 0.5, 0, kMostStill);
  read.seed = static_cast<std::uint64_t>(
      options.get_integer("seed", 0, 0, std::numeric_limits<std::int64_t>::max()));
  options.refuse_unknown();
  if (read.chance() > 1) {
    throw Error(cat("still:length=", read.length, ",share=", read.share,
                    ": stretches this short cannot make up so large a share; give a larger length "
                    "or a smaller share"));
  }
  return std::make_unique<StillStream>(below(), read);
}

}  // namespace riffle
