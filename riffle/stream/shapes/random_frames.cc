#include "riffle/stream/shapes/random_frames.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "riffle/base/random.h"
#include "riffle/stream/shapes/shape.h"
#include "riffle/stream/shapes/shape_position.h"

namespace riffle {
namespace {

class RandomFrames : public Shape {
 public:
  RandomFrames(std::unique_ptr<Stream> below, std::int64_t length, std::uint64_t seed)
      : Shape(std::move(below)),
        length_(static_cast<std::size_t>(length)),
        seed_(seed),
        start_(this->below().position()) {}

  std::optional<Sample> next() override {
    while (true) {
      if (!collected_ && !collect()) return std::nullopt;
      if (given_ < frames_.size()) return std::move(frames_[given_++].second);
      collected_ = false;
      if (frames_.empty()) return std::nullopt;
      start_ = std::exchange(next_start_, {});
      ++clip_;
      given_ = 0;
    }
  }

  std::string position() const override {
    return write_position("frames", {{clip_, static_cast<std::int64_t>(given_)}, {start_}});
  }

  void seek(const std::string& position) override {
    const auto read = read_position("frames", position, 2, 1);
    below().seek(read.below[0]);
    start_ = read.below[0];
    clip_ = read.numbers[0];
    given_ = static_cast<std::size_t>(read.numbers[1]);
    ahead_.reset();
    collected_ = false;
  }

 private:
  // Reads a clip, or a still, from where the stream below is; nothing at its end. Returns false if
  // stop() was called meanwhile.
  bool collect() {
    frames_.clear();
    Random random(seed_, Purpose("random frames"), static_cast<std::uint64_t>(clip_));
    std::uint64_t seen = 0;
    std::string first_key;
    std::int64_t clip = kNoClip;
    while (true) {
      std::string before = below().position();
      auto sample = ahead_ ? std::exchange(ahead_, std::nullopt) : below().next();
      if (!sample && stopped()) return false;
      if (!sample) {
        next_start_ = std::move(before);
        break;
      }
      if (seen == 0) {
        clip = sample->clip;
        first_key = sample->key;
      } else if (clip == kNoClip || sample->clip != clip || sample->key == first_key) {
        next_start_ = std::move(before);
        ahead_ = std::move(sample);
        break;
      }
      if (clip != kNoClip) sample->clip = clip_;
      // Of the frames so far, each is among those held with the same probability.
      const std::uint64_t place = seen < length_ ? seen : random.below(seen + 1);
      if (seen < length_) {
        frames_.emplace_back(seen, std::move(*sample));
      } else if (place < length_) {
        frames_[place] = {seen, std::move(*sample)};
      }
      ++seen;
    }
    std::ranges::sort(frames_, {}, &std::pair<std::uint64_t, Sample>::first);
    return collected_ = true;
  }

  const std::size_t length_;
  const std::uint64_t seed_;
  // The place below before the clip, and before the next one.
  std::string start_, next_start_;
  std::int64_t clip_ = 0;
  // Of the clip.
  std::size_t given_ = 0;
  bool collected_ = false;
  // With their numbers within the clip.
  std::vector<std::pair<std::uint64_t, Sample>> frames_;
  // Read already: the first of the next clip.
  std::optional<Sample> ahead_;
};

}  // namespace

std::unique_ptr<Stream> random_frames(std::unique_ptr<Stream> below, std::int64_t length,
                                      std::uint64_t seed) {
  return std::make_unique<RandomFrames>(std::move(below), length, seed);
}

}  // namespace riffle
