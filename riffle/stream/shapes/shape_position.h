// The position of a shape as text: its name, its own numbers, and the positions of the streams
// below it in percent code, so that positions nest to any depth.
#pragma once

#include <cstddef>
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
// Numbers are counts, so that a shape may count on from them: one that no stream reaches is refused
// too. `names`: how many of them, the last ones, are not, but stand for something below.
ShapePosition read_position(const std::string& shape, const std::string& text, std::size_t numbers,
                            std::size_t below, std::size_t names = 0);

}  // namespace riffle
