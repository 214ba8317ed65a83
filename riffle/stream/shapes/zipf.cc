#include "riffle/stream/shapes/zipf.h"

#include <cmath>
#include <limits>

#include "riffle/base/error.h"
#include "riffle/base/name_hash.h"
#include "riffle/base/random.h"
#include "riffle/base/text.h"
#include "riffle/stream/shapes/shape_position.h"

namespace riffle {
namespace {

struct ZipfOptions {
  std::int64_t classes = 0;
  double exponent = 0;
  std::uint64_t seed = 0;
};

class ZipfStream : public Shape {
 public:
  ZipfStream(std::unique_ptr<Stream> below, const ZipfOptions& options)
      : Shape(std::move(below)), options_(options) {}

  std::optional<Sample> next() override {
    while (true) {
      auto sample = below().next();
      if (!sample) return std::nullopt;
      if (!keeps(*sample)) continue;
      sample->index = static_cast<std::uint64_t>(given_++);
      return sample;
    }
  }

  std::string position() const override {
    return write_position("zipf", {{given_, seen_}, {below().position()}});
  }

  void seek(const std::string& position) override {
    const auto read = read_position("zipf", position, 2, 1);
    below().seek(read.below[0]);
    given_ = read.numbers[0];
    seen_ = read.numbers[1];
  }

 private:
  bool keeps(const Sample& sample) {
    if (sample.label.empty()) {
      throw Error(cat("the shape zipf needs labels; '", sample.key, "' has none"));
    }
    const auto rank = static_cast<double>(zipf_rank(sample.label, options_.classes, options_.seed));
    Random random(options_.seed, Purpose("zipf"), static_cast<std::uint64_t>(seen_++));
    return random.chance(static_cast<float>(std::pow(rank, -options_.exponent)));
  }

  const ZipfOptions options_;
  std::int64_t given_ = 0;
  std::int64_t seen_ = 0;  // taken from below
};

}  // namespace

std::int64_t zipf_rank(const std::string& label, std::int64_t classes, std::uint64_t seed) {
  Random random(seed, Purpose("zipf rank"), name_hash(label));
  return 1 + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(classes)));
}

std::unique_ptr<Stream> shape_zipf(Uri& options, const StreamFactory& below) {
  ZipfOptions read;
  read.classes = options.get_integer("classes", 1, 1, std::int64_t{1} << 32);
  read.exponent = options.get_number("exponent", 1, 0, 10);
  read.seed = static_cast<std::uint64_t>(
      options.get_integer("seed", 0, 0, std::numeric_limits<std::int64_t>::max()));
  options.refuse_unknown();
  options.require("classes", "zipf:classes=200");
  return std::make_unique<ZipfStream>(below(), read);
}

}  // namespace riffle
