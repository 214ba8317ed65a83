#include "riffle/stream/shapes/shape_position.h"

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/stream/uri.h"

namespace riffle {

std::string write_position(const std::string& shape, const ShapePosition& position) {
  std::string text = shape;
  for (const auto number : position.numbers) text += ' ' + std::to_string(number);
  for (const auto& inner : position.below) text += ' ' + encode_percent(inner);
  return text;
}

ShapePosition read_position(const std::string& shape, const std::string& text, std::size_t numbers,
                            std::size_t below, std::size_t names) {
  constexpr std::int64_t kMostCounted = std::int64_t{1} << 62;
  const auto parts = split(text, ' ');
  if (parts.size() != 1 + numbers + below || parts[0] != shape) {
    throw Error(cat("'", text, "' is not a position of a stream with the shape ", shape));
  }
  ShapePosition position;
  for (std::size_t i = 0; i < numbers; ++i) {
    const auto number = parse_integer(parts[1 + i], cat("a number in a position of ", shape));
    if (number < 0 || (number > kMostCounted && i + names < numbers)) {
      throw Error(cat("the position '", text, "' holds a number that counts nothing"));
    }
    position.numbers.push_back(number);
  }
  for (std::size_t i = 1 + numbers; i < parts.size(); ++i) {
    position.below.push_back(decode_percent(parts[i]));
  }
  return position;
}

}  // namespace riffle
