#include "riffle/stream/shapes/loop.h"

#include "riffle/stream/shapes/shape_position.h"

namespace riffle {
namespace {

class LoopStream : public Shape {
 public:
  LoopStream(std::unique_ptr<Stream> below, std::int64_t times)
      : Shape(std::move(below)), times_(times), start_(this->below().position()) {}

  std::optional<Sample> next() override {
    auto sample = below().next();
    if (!sample && !stopped() && (times_ == 0 || pass_ + 1 < times_)) {
      // seek() makes the stream below forget that it repeated itself.
      if (pass_ == 0) period_ = below().period().value_or(given_);
      below().seek(start_);
      ++pass_;
      sample = below().next();
    }
    if (sample) sample->index = static_cast<std::uint64_t>(given_++);
    return sample;
  }

  bool divide(const StreamShare& share) override { return below().divide(share); }
  bool endless() const override { return times_ == 0 || Shape::endless(); }
  std::optional<std::int64_t> period() const override {
    return period_ ? period_ : below().period();
  }

  std::string position() const override {
    return write_position("loop", {{given_, pass_}, {below().position()}});
  }

  void seek(const std::string& position) override {
    const auto read = read_position("loop", position, 2, 1);
    below().seek(read.below[0]);
    given_ = read.numbers[0];
    pass_ = read.numbers[1];
    if (pass_ == 0) period_.reset();
  }

 private:
  const std::int64_t times_;
  const std::string start_;
  std::int64_t given_ = 0;
  std::int64_t pass_ = 0;
  std::optional<std::int64_t> period_;
};

}  // namespace

std::unique_ptr<Stream> looped(std::unique_ptr<Stream> below, std::int64_t times) {
  return std::make_unique<LoopStream>(std::move(below), times);
}

std::unique_ptr<Stream> shape_loop(Uri& options, const StreamFactory& below) {
  const auto times = options.get_integer("times", 0, 0, std::int64_t{1} << 40);
  options.refuse_unknown();
  return looped(below(), times);
}

}  // namespace riffle
