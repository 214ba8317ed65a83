// The position of a shape as text: its name, its own numbers, and the positions of the streams
// below it in percent code, so that positions nest to any depth.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace riffle {

struct ShapePosition {
  std::vector<std::int64_t> numbers;  // none negative
  std::vector<std::string> below;
};

std::string write_position(const std::string& shape, const ShapePosition& position);

// Throws Error, naming the shape, unless the text has this many numbers and positions below.
ShapePosition read_position(const std::string& shape, const std::string& text, std::size_t numbers,
                            std::size_t below);

}  // namespace riffle
