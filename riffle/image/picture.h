// A picture in memory: 8-bit RGB, rows from the top, no padding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace riffle {

struct Picture {
  int width = 0;
  int height = 0;
  std::vector<std::uint8_t> rgb;  // height x width x 3
  // The bytes that it was decoded from, if somebody wants them (Decoding::keep_file). What is
  // made from a picture has none.
  std::shared_ptr<const std::vector<std::byte>> file;

  Picture() = default;
  Picture(int w, int h)
      : width(w), height(h), rgb(static_cast<std::size_t>(w) * static_cast<std::size_t>(h) * 3) {}

  std::uint8_t* at(int x, int y) { return rgb.data() + offset(x, y); }
  const std::uint8_t* at(int x, int y) const { return rgb.data() + offset(x, y); }
  // Compares what is seen.
  bool operator==(const Picture& other) const {
    return width == other.width && height == other.height && rgb == other.rgb;
  }

 private:
  std::size_t offset(int x, int y) const {
    return (static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
            static_cast<std::size_t>(x)) *
           3;
  }
};

}  // namespace riffle
