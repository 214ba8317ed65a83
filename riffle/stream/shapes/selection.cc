#include "riffle/stream/shapes/selection.h"

#include "riffle/stream/shapes/shape_position.h"

namespace riffle {
namespace {

class Selection : public Shape {
 public:
  Selection(std::unique_ptr<Stream> below, std::function<bool(const Sample&)> wanted)
      : Shape(std::move(below)),
        wanted_(std::move(wanted)),
        all_below_are_wanted_(this->below().keep_only(wanted_)) {}

  std::optional<Sample> next() override {
    while (true) {
      auto sample = below().next();
      if (!sample) return std::nullopt;
      if (!all_below_are_wanted_ && !wanted_(*sample)) continue;
      sample->index = static_cast<std::uint64_t>(given_++);
      return sample;
    }
  }

  std::string position() const override {
    return write_position("selection", {{given_}, {below().position()}});
  }

  void seek(const std::string& position) override {
    const auto read = read_position("selection", position, 1, 1);
    below().seek(read.below[0]);
    given_ = read.numbers[0];
  }

 private:
  const std::function<bool(const Sample&)> wanted_;
  const bool all_below_are_wanted_;
  std::int64_t given_ = 0;
};

}  // namespace

std::unique_ptr<Stream> select(std::unique_ptr<Stream> below,
                               std::function<bool(const Sample&)> wanted) {
  return std::make_unique<Selection>(std::move(below), std::move(wanted));
}

}  // namespace riffle
