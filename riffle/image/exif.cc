#include "riffle/image/exif.h"

#include <cstdint>
#include <optional>
#include <stdexcept>

namespace riffle {
namespace {

// Numbers in a TIFF block, in the byte order its header names.
class TiffReader {
 public:
  explicit TiffReader(std::span<const std::byte> bytes) : bytes_(bytes) {
    const auto first = number(0, 2);
    little_endian_ = first == 0x4949;
    valid_ = (little_endian_ || first == 0x4d4d) && number(2, 2) == 42;
  }

  bool valid() const { return valid_; }

  std::optional<std::uint32_t> number(std::size_t offset, std::size_t size) const {
    if (offset > bytes_.size() || bytes_.size() - offset < size) return std::nullopt;
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < size; ++i) {
      const auto next = bytes_[offset + (little_endian_ ? size - 1 - i : i)];
      value = value << 8 | static_cast<std::uint32_t>(next);
    }
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
  bool little_endian_ = false;
  bool valid_ = false;
};

constexpr std::uint32_t kOrientationTag = 0x0112;
constexpr std::uint32_t kShortType = 3;
constexpr std::uint32_t kLongType = 4;
constexpr std::size_t kEntrySize = 12;

}  // namespace

int exif_orientation(std::span<const std::byte> tiff) {
  constexpr int kUpright = 1;
  const TiffReader reader(tiff);
  if (!reader.valid()) return kUpright;
  const auto directory = reader.number(4, 4);
  if (!directory) return kUpright;
  const auto entries = reader.number(*directory, 2);
  if (!entries) return kUpright;
  for (std::size_t i = 0; i < *entries; ++i) {
    const std::size_t entry = std::size_t{*directory} + 2 + i * kEntrySize;
    const auto tag = reader.number(entry, 2);
    if (!tag) return kUpright;
    if (*tag != kOrientationTag) continue;
    const auto type = reader.number(entry + 2, 2);
    if (type != kShortType && type != kLongType) return kUpright;
    const auto value = reader.number(entry + 8, type == kShortType ? 2 : 4);
    return value && *value >= 1 && *value <= 8 ? static_cast<int>(*value) : kUpright;
  }
  return kUpright;
}

Picture turn_upright(Picture picture, int orientation) {
  if (orientation < 1 || orientation > 8) throw std::logic_error("orientation is not in 1..8");
  if (orientation == 1 || picture.rgb.empty()) return picture;

  // Every orientation is a walk over the stored pixels: from which corner, and which way a step
  // right and a step down in the upright picture leads in the stored one.
  const bool swaps_sides = orientation >= 5;
  const bool from_right =
      orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool from_bottom =
      orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  const std::ptrdiff_t along_row = from_right ? -3 : 3;
  const std::ptrdiff_t row_bytes = std::ptrdiff_t{picture.width} * 3;
  const std::ptrdiff_t along_column = from_bottom ? -row_bytes : row_bytes;
  const std::ptrdiff_t right = swaps_sides ? along_column : along_row;
  const std::ptrdiff_t down = swaps_sides ? along_row : along_column;
  const std::uint8_t* corner =
      picture.at(from_right ? picture.width - 1 : 0, from_bottom ? picture.height - 1 : 0);

  Picture upright(swaps_sides ? picture.height : picture.width,
                  swaps_sides ? picture.width : picture.height);
  std::uint8_t* out = upright.rgb.data();
  for (std::ptrdiff_t y = 0; y < upright.height; ++y) {
    for (std::ptrdiff_t x = 0; x < upright.width; ++x, out += 3) {
      const std::uint8_t* in = corner + x * right + y * down;
      out[0] = in[0];
      out[1] = in[1];
      out[2] = in[2];
    }
  }
  return upright;
}

}  // namespace riffle
