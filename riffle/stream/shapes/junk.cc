#include "riffle/stream/shapes/junk.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "riffle/base/random.h"
#include "riffle/base/text.h"
#include "riffle/stream/shapes/junk_frame.h"
#include "riffle/stream/shapes/shape_position.h"

namespace riffle {
namespace {

constexpr const char* kMixed = "mixed";

struct JunkOptions {
  float share = 0;
  std::vector<std::size_t> kinds;  // of junk_kinds()
  std::int64_t run = 1;
  std::uint64_t seed = 0;
};

class JunkStream : public Shape {
 public:
  JunkStream(std::unique_ptr<Stream> below, JunkOptions options)
      : Shape(std::move(below)), options_(std::move(options)) {}

  std::optional<Sample> next() override {
    const bool junk = is_junk();
    if (junk && !following_) {
      before_following_ = below().position();
      following_ = below().next();
      if (!following_) return std::nullopt;
    }
    auto sample = junk ? junk_sample() : take();
    if (sample) sample->index = static_cast<std::uint64_t>(given_++);
    return sample;
  }

  std::string position() const override {
    return write_position("junk",
                          {{given_}, {following_ ? before_following_ : below().position()}});
  }

  void seek(const std::string& position) override {
    const auto read = read_position("junk", position, 1, 1);
    below().seek(read.below[0]);
    given_ = read.numbers[0];
    following_.reset();
  }

 private:
  bool is_junk() const {
    const auto stretch = static_cast<std::uint64_t>(given_ / options_.run);
    return Random(options_.seed, Purpose("junk"), stretch).chance(options_.share);
  }

  std::optional<Sample> take() {
    return following_ ? std::exchange(following_, std::nullopt) : below().next();
  }

  Sample junk_sample() const {
    Random random(options_.seed, Purpose("junk frame"), static_cast<std::uint64_t>(given_));
    const std::size_t kind = options_.kinds[random.below(options_.kinds.size())];
    Sample sample;
    sample.picture = junk_frame(kind, following_->picture, random);
    sample.label = kJunkLabel;
    sample.key = cat(kJunkLabel, " ", given_, " ", junk_kinds()[kind]);
    return sample;
  }

  const JunkOptions options_;
  std::int64_t given_ = 0;
  std::optional<Sample> following_;  // read for its size; comes after the junk
  std::string before_following_;     // the place below
};

}  // namespace

std::unique_ptr<Stream> shape_junk(Uri& options, const StreamFactory& below) {
  constexpr double kMostJunk = 0.99;
  JunkOptions read;
  read.share = static_cast<float>(options.get_number("share", 0.2, 0, kMostJunk));
  std::vector<std::string> names = {kMixed};
  names.insert(names.end(), junk_kinds().begin(), junk_kinds().end());
  const auto kind = options.get_choice("kind", names);
  for (std::size_t i = 0; i < junk_kinds().size(); ++i) {
    if (kind == kMixed || kind == junk_kinds()[i]) read.kinds.push_back(i);
  }
  read.run = options.get_integer("run", 1, 1, 1 << 20);
  read.seed = static_cast<std::uint64_t>(
      options.get_integer("seed", 0, 0, std::numeric_limits<std::int64_t>::max()));
  options.refuse_unknown();
  return std::make_unique<JunkStream>(below(), std::move(read));
}

}  // namespace riffle
