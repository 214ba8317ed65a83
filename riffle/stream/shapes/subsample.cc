#include "riffle/stream/shapes/subsample.h"

#include <limits>
#include <optional>

#include "riffle/base/random.h"
#include "riffle/stream/shapes/shape_position.h"

namespace riffle {
namespace {

class SubsampleStream : public Shape {
 public:
  // `seed`: nothing picks the first.
  SubsampleStream(std::unique_ptr<Stream> below, std::int64_t every,
                  std::optional<std::uint64_t> seed)
      : Shape(std::move(below)), every_(every), seed_(seed) {}

  std::optional<Sample> next() override {
    while (true) {
      auto sample = below().next();
      if (!sample) return std::nullopt;
      const std::int64_t number = seen_++;
      if (number % every_ != picked(number / every_)) continue;
      sample->index = given_++;
      return sample;
    }
  }

  std::string position() const override {
    return write_position("subsample", {{seen_}, {below().position()}});
  }

  void seek(const std::string& position) override {
    const auto read = read_position("subsample", position, 1, 1);
    below().seek(read.below[0]);
    seen_ = read.numbers[0];
    given_ = static_cast<std::uint64_t>(seen_ / every_);
    if (seen_ % every_ > picked(seen_ / every_)) ++given_;
  }

  std::vector<std::int64_t> turns() const override {
    auto ends = below().turns();
    for (auto& end : ends) end = (end + every_ - 1) / every_;
    return ends;
  }

 private:
  // Returns the place of the sample that is kept among the `every_` of a stretch.
  std::int64_t picked(std::int64_t stretch) const {
    if (!seed_) return 0;
    Random random(*seed_, Purpose("subsample"), static_cast<std::uint64_t>(stretch));
    return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(every_)));
  }

  const std::int64_t every_;
  const std::optional<std::uint64_t> seed_;
  std::int64_t seen_ = 0;  // taken from below
  std::uint64_t given_ = 0;
};

}  // namespace

std::unique_ptr<Stream> shape_subsample(Uri& options, const StreamFactory& below) {
  const auto every = options.get_integer("every", 1, 1, std::int64_t{1} << 40);
  std::optional<std::uint64_t> seed;
  const auto given = static_cast<std::uint64_t>(
      options.get_integer("seed", 0, 0, std::numeric_limits<std::int64_t>::max()));
  if (options.get_choice("pick", {"first", "random"}) == "random") seed = given;
  options.refuse_unknown();
  options.require("every", "subsample:every=8");
  return std::make_unique<SubsampleStream>(below(), every, seed);
}

}  // namespace riffle
