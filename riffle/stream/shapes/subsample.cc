#include "riffle/stream/shapes/subsample.h"

#include "riffle/stream/shapes/shape_position.h"

namespace riffle {
namespace {

class SubsampleStream : public Shape {
 public:
  SubsampleStream(std::unique_ptr<Stream> below, std::int64_t every)
      : Shape(std::move(below)), every_(every) {}

  std::optional<Sample> next() override {
    while (true) {
      auto sample = below().next();
      if (!sample) return std::nullopt;
      const std::int64_t number = seen_++;
      if (number % every_ != 0) continue;
      sample->index = static_cast<std::uint64_t>(number / every_);
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
  }

 private:
  const std::int64_t every_;
  std::int64_t seen_ = 0;  // taken from below
};

}  // namespace

std::unique_ptr<Stream> shape_subsample(Uri& options, const StreamFactory& below) {
  const auto every = options.get_integer("every", 1, 1, std::int64_t{1} << 40);
  options.refuse_unknown();
  options.require("every", "subsample:every=8");
  return std::make_unique<SubsampleStream>(below(), every);
}

}  // namespace riffle
