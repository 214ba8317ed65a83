#include "riffle/image/contact_sheet.h"

#include <algorithm>
#include <stdexcept>

#include "riffle/image/resize.h"

namespace riffle {
namespace {

constexpr int kBorder = 2;
constexpr std::uint8_t kGround = 48;

}  // namespace

Picture contact_sheet(std::span<const Picture> pictures, int columns, int cell) {
  if (columns < 1 || cell < 1) throw std::logic_error("a contact sheet needs columns and cells");
  const int count = static_cast<int>(pictures.size());
  const int across = std::clamp(count, 1, columns);
  const int down = std::max(1, (count + across - 1) / across);
  const int pitch = cell + kBorder;
  Picture sheet(across * pitch + kBorder, down * pitch + kBorder);
  std::fill(sheet.rgb.begin(), sheet.rgb.end(), kGround);
  for (int i = 0; i < count; ++i) {
    const Picture small = fit_square(pictures[static_cast<std::size_t>(i)], cell);
    const int left = kBorder + i % across * pitch, top = kBorder + i / across * pitch;
    for (int y = 0; y < cell; ++y) std::copy_n(small.at(0, y), cell * 3, sheet.at(left, top + y));
  }
  return sheet;
}

}  // namespace riffle
