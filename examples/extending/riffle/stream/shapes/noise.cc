#include "riffle/stream/shapes/noise.h"

#include <algorithm>
#include <cmath>

#include "riffle/base/random.h"
#include "riffle/stream/shapes/shape_position.h"

namespace riffle {
namespace {

class NoiseStream : public Shape {
 public:
  NoiseStream(std::unique_ptr<Stream> below, float amount, std::uint64_t seed)
      : Shape(std::move(below)), amount_(amount), seed_(seed) {}

  std::optional<Sample> next() override {
    auto sample = below().next();
    if (!sample) return std::nullopt;
    sample->index = static_cast<std::uint64_t>(given_++);
    Random random(seed_, Purpose("noise"), sample->index);
    for (auto& value : sample->picture.rgb) {
      const float noisy = std::round(static_cast<float>(value) + amount_ * random.normal());
      value = static_cast<std::uint8_t>(std::clamp(noisy, 0.0f, 255.0f));
    }
    return sample;
  }

  std::string position() const override {
    return write_position("noise", {{given_}, {below().position()}});
  }

  void seek(const std::string& position) override {
    const auto read = read_position("noise", position, 1, 1);
    below().seek(read.below[0]);
    given_ = read.numbers[0];
  }

 private:
  const float amount_;
  const std::uint64_t seed_;
  std::int64_t given_ = 0;
};

}  // namespace

std::unique_ptr<Stream> shape_noise(Uri& options, const StreamFactory& below) {
  const double amount = options.get_number("amount", 20, 0, 255);
  const auto seed = options.get_integer("seed", 0, 0, std::int64_t{1} << 48);
  options.refuse_unknown();
  return std::make_unique<NoiseStream>(below(), static_cast<float>(amount),
                                       static_cast<std::uint64_t>(seed));
}

}  // namespace riffle
