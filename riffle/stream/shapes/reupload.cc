#include "riffle/stream/shapes/reupload.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "riffle/base/name_hash.h"
#include "riffle/base/random.h"
#include "riffle/base/text.h"
#include "riffle/image/codec.h"
#include "riffle/image/resize.h"
#include "riffle/stream/shapes/shape_position.h"

namespace riffle {
namespace {

struct ReuploadOptions {
  float share = 0;
  std::int64_t window = 0;
  std::uint64_t seed = 0;
};

Picture cropped(const Picture& picture, Random& random) {
  constexpr float kMost = 0.1f;  // of a side
  const auto cut = [&random](int side) {
    return static_cast<int>(random.uniform(0, kMost) * static_cast<float>(side));
  };
  const int left = cut(picture.width), right = cut(picture.width);
  const int top = cut(picture.height), bottom = cut(picture.height);
  Picture part(picture.width - left - right, picture.height - top - bottom);
  for (int y = 0; y < part.height; ++y) {
    std::copy_n(picture.at(left, top + y), 3 * part.width, part.at(0, y));
  }
  return resize(part, picture.width, picture.height);
}

Picture uploaded_again(const Picture& picture, Random& random) {
  constexpr float kMostLight = 0.1f;
  constexpr int kLowestQuality = 40, kHighestQuality = 85;
  Picture changed = cropped(picture, random);
  const float light = random.uniform(1 - kMostLight, 1 + kMostLight);
  for (auto& value : changed.rgb) {
    const float lit = light * static_cast<float>(value);
    value = static_cast<std::uint8_t>(std::lround(std::min(lit, 255.0f)));
  }
  const int quality =
      kLowestQuality + static_cast<int>(random.below(kHighestQuality - kLowestQuality + 1));
  DecodeFailure failure;
  auto decoded = decode(encode_jpeg(changed, quality), {}, failure);
  if (!decoded) throw std::logic_error("our own JPEG cannot be read: " + failure.detail);
  return std::move(*decoded);
}

// Held are the blocks of `window` samples in which the newest and the `window` samples before it
// lie.
class ReuploadStream : public Shape {
 public:
  ReuploadStream(std::unique_ptr<Stream> below, const ReuploadOptions& options)
      : Shape(std::move(below)), options_(options), start_(this->below().position()) {}

  std::optional<Sample> next() override {
    if (!held_ && !hold_again()) return std::nullopt;
    Random random(options_.seed, Purpose("reupload"), static_cast<std::uint64_t>(given_));
    const bool again = random.chance(options_.share) && !newer_.empty();
    auto sample = again ? old_sample(random) : read();
    if (sample) sample->index = static_cast<std::uint64_t>(given_++);
    return sample;
  }

  std::string position() const override {
    return write_position("reupload", {{given_, seen_}, {start_}});
  }

  void seek(const std::string& position) override {
    const auto place = read_position("reupload", position, 2, 1);
    below().seek(place.below[0]);
    given_ = place.numbers[0];
    seen_ = place.numbers[1];
    start_ = place.below[0];
    held_ = false;
  }

 private:
  std::optional<Sample> read() {
    const bool new_block = seen_ % options_.window == 0;
    std::string before = new_block ? below().position() : std::string();
    auto sample = below().next();
    if (!sample) return sample;
    if (new_block) {
      start_ = newer_.empty() ? before : newer_start_;
      older_ = std::exchange(newer_, {});
      newer_start_ = std::move(before);
    }
    newer_.push_back(*sample);
    ++seen_;
    return sample;
  }

  // Reads again what was held where seek() went. False if stop() came in between.
  bool hold_again() {
    const std::int64_t last_block = std::max<std::int64_t>(0, seen_ - 1) / options_.window;
    const std::int64_t end = seen_;
    const std::string start = start_;
    older_.clear();
    newer_.clear();
    seen_ = std::max<std::int64_t>(0, last_block - 1) * options_.window;
    while (seen_ < end && read()) {
    }
    held_ = !stopped();
    if (held_) return true;
    seen_ = end;
    start_ = start;
    return false;
  }

  Sample old_sample(Random& random) {
    const auto most = std::min<std::size_t>(static_cast<std::size_t>(options_.window),
                                            older_.size() + newer_.size());
    const std::size_t age = random.below(most);
    const Sample& old = age < newer_.size() ? newer_[newer_.size() - 1 - age]
                                            : older_[older_.size() - 1 - (age - newer_.size())];
    Sample sample;
    sample.picture = uploaded_again(old.picture, random);
    sample.label = old.label;
    sample.key = cat(old.key, " again ", given_);
    if (old.clip != kNoClip) sample.clip = stable_number(sample.key);
    return sample;
  }

  const ReuploadOptions options_;
  std::int64_t given_ = 0;
  std::int64_t seen_ = 0;  // taken from below
  bool held_ = true;       // whether the following are those of the place
  std::vector<Sample> older_, newer_;
  std::string start_, newer_start_;  // places below: before all that is held, before newer_
};

}  // namespace

std::unique_ptr<Stream> shape_reupload(Uri& options, const StreamFactory& below) {
  constexpr double kMostAgain = 0.99;
  ReuploadOptions read;
  read.share = static_cast<float>(options.get_number("share", 0.2, 0, kMostAgain));
  read.window = options.get_integer("window", 1000, 1, 1 << 24);
  read.seed = static_cast<std::uint64_t>(
      options.get_integer("seed", 0, 0, std::numeric_limits<std::int64_t>::max()));
  options.refuse_unknown();
  return std::make_unique<ReuploadStream>(below(), read);
}

}  // namespace riffle
