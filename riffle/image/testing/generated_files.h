// For tests: generated pictures and files, in every variety that JPEG and PNG have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "riffle/image/picture.h"

namespace riffle {

// Returns a picture without symmetry that survives JPEG well: smooth ramps and a bright corner.
Picture generated_picture(int width, int height);

// Returns an EXIF block (from its TIFF header on) that holds one orientation.
std::vector<std::byte> generated_exif(int orientation, bool little_endian);

enum class JpegColours { rgb, grey, cmyk, ycck };
struct JpegKind {
  JpegColours colours = JpegColours::rgb;
  bool progressive = false;
  bool halved_chroma = false;
  bool scan_per_channel = false;
  std::uint8_t black = 255;  // the inverted black ink of CMYK: 255 is none
  std::vector<std::byte> exif = {};
};
std::vector<std::byte> generated_jpeg(const Picture& picture, const JpegKind& kind);

struct PngKind {
  int colour_type;  // as libpng counts them
  int depth = 8;
  bool interlaced = false;
  bool transparent_colour = false;  // a tRNS chunk
  std::vector<std::byte> exif = {};
};
// `value` gives sample `channel` at (x, y), below 2^depth. A palette, where the kind has one, holds
// entry i as (i, 255 - i, 7 i mod 256).
std::vector<std::byte> generated_png(
    int width, int height, const PngKind& kind,
    const std::function<unsigned(int x, int y, int channel)>& value);

// Rewrites the checksum of every chunk that can be found, so that damage inside reaches the
// decoder.
void repair_checksums(std::vector<std::byte>& png);

}  // namespace riffle
