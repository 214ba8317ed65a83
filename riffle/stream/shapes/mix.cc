#include "riffle/stream/shapes/mix.h"

#include <algorithm>
#include <limits>

#include "riffle/base/error.h"
#include "riffle/base/random.h"
#include "riffle/base/text.h"
#include "riffle/stream/shapes/shape_position.h"

namespace riffle {
namespace {

// Returns an even number for the first stream, an odd one for the second. An id of 63 bits, as a
// source may draw it from a name, loses the highest one.
std::int64_t apart(std::int64_t clip, bool from_second) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>((static_cast<std::uint64_t>(clip) << 1 | (from_second ? 1 : 0)) &
                                   kMost);
}

class MixStream : public Shape {
 public:
  MixStream(std::unique_ptr<Stream> below, std::unique_ptr<Stream> second, float share,
            std::uint64_t seed)
      : Shape(std::move(below)), second_(std::move(second)), share_(share), seed_(seed) {}

  std::optional<Sample> next() override {
    const auto number = static_cast<std::uint64_t>(given_);
    bool from_second = !second_ended_ && Random(seed_, Purpose("mix"), number).chance(share_);
    auto sample = from_second ? second_->next() : below().next();
    if (!sample && from_second && !stopped()) {
      second_ended_ = true;
      from_second = false;
      sample = below().next();
    }
    if (!sample) return std::nullopt;
    sample->index = number;
    if (sample->clip != kNoClip) sample->clip = apart(sample->clip, from_second);
    ++given_;
    return sample;
  }

  std::string position() const override {
    return write_position(
        "mix", {{given_, second_ended_ ? 1 : 0}, {below().position(), second_->position()}});
  }

  void seek(const std::string& position) override {
    const auto read = read_position("mix", position, 2, 2);
    const auto old = below().position();
    below().seek(read.below[0]);
    try {
      second_->seek(read.below[1]);
    } catch (const Error&) {
      below().seek(old);
      throw;
    }
    given_ = read.numbers[0];
    second_ended_ = read.numbers[1] != 0;
  }

  void stop() override {
    Shape::stop();
    second_->stop();
  }

  double unreachable_s() const override {
    return std::max(Shape::unreachable_s(), second_->unreachable_s());
  }

  std::map<std::string, std::int64_t> skipped() const override {
    auto counts = Shape::skipped();
    for (const auto& [reason, count] : second_->skipped()) counts[reason] += count;
    return counts;
  }

 private:
  const std::unique_ptr<Stream> second_;
  const float share_;
  const std::uint64_t seed_;
  std::int64_t given_ = 0;
  bool second_ended_ = false;
};

}  // namespace

std::unique_ptr<Stream> shape_mix(Uri& options, const StreamFactory& below) {
  const auto share = static_cast<float>(options.get_number("share", 0.5, 0, 1));
  const auto seed = static_cast<std::uint64_t>(
      options.get_integer("seed", 0, 0, std::numeric_limits<std::int64_t>::max()));
  options.refuse_unknown();
  if (options.path().empty()) {
    throw Error("the shape mix needs the address of a stream, such as mix:folder:/data/photos");
  }
  auto second = open_stream(options.path());
  return std::make_unique<MixStream>(below(), std::move(second), share, seed);
}

}  // namespace riffle
