// Pictures as sources decode them, and the EXIF block inside.

#include <stdexcept>
#include <vector>

#include "fuzz/targets.h"

#include "riffle/image/exif.h"
#include "riffle/image/testing/generated_files.h"
#include "riffle/stream/decoding.h"

namespace riffle::fuzz {
namespace {

// Enough for all that a decoder does, and quick.
constexpr std::int64_t kMostPixels = 1 << 16;

void require_whole_picture(const Decoded& decoded) {
  if (!decoded.picture) {
    if (decoded.failure.reason.empty()) throw std::logic_error("neither a picture nor a reason");
    return;
  }
  const Picture& picture = *decoded.picture;
  const auto bytes = static_cast<std::size_t>(picture.width) * picture.height * 3;
  if (picture.width < 1 || picture.height < 1 || picture.rgb.size() != bytes) {
    throw std::logic_error("half a picture");
  }
}

}  // namespace

void read_picture(Bytes bytes) {
  for (const int short_side : {0, 8}) {
    const Decoding decoding{.options = {.short_side = short_side, .max_pixels = kMostPixels}};
    require_whole_picture(decode(bytes, decoding));
    // Damage inside a PNG is met by its checksums first; so again with these put right.
    std::vector<std::byte> repaired(bytes.begin(), bytes.end());
    repair_checksums(repaired);
    require_whole_picture(decode(repaired, decoding));
  }
}

void read_exif(Bytes bytes) {
  const int orientation = exif_orientation(bytes);
  if (orientation < 1 || orientation > 8) throw std::logic_error("an orientation that is none");
  turn_upright(Picture(3, 2), orientation);
}

}  // namespace riffle::fuzz
