#include "riffle/stream/shapes/limit.h"

#include <limits>

#include "riffle/stream/shapes/shape_position.h"

namespace riffle {
namespace {

class LimitStream : public Shape {
 public:
  LimitStream(std::unique_ptr<Stream> below, std::int64_t samples)
      : Shape(std::move(below)), samples_(samples) {}

  std::optional<Sample> next() override {
    if (given_ >= samples_) return std::nullopt;
    auto sample = below().next();
    if (sample) sample->index = static_cast<std::uint64_t>(given_++);
    return sample;
  }

  bool divide(const StreamShare& share) override { return below().divide(share); }
  std::optional<std::int64_t> period() const override { return below().period(); }
  bool endless() const override { return false; }

  std::string position() const override {
    return write_position("limit", {{given_}, {below().position()}});
  }

  void seek(const std::string& position) override {
    const auto read = read_position("limit", position, 1, 1);
    below().seek(read.below[0]);
    given_ = read.numbers[0];
  }

 private:
  const std::int64_t samples_;
  std::int64_t given_ = 0;
};

}  // namespace

std::unique_ptr<Stream> shape_limit(Uri& options, const StreamFactory& below) {
  const auto samples =
      options.get_integer("samples", 0, 0, std::numeric_limits<std::int64_t>::max());
  options.refuse_unknown();
  options.require("samples", "limit:samples=10000");
  return std::make_unique<LimitStream>(below(), samples);
}

}  // namespace riffle
