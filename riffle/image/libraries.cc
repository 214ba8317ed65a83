#include "riffle/image/libraries.h"

#include <cstdio>

#include <jpeglib.h>
#ifdef RIFFLE_HEIF
#include <libheif/heif.h>
#endif
#include <png.h>

// In two steps, so that the macro's value becomes text, not its name.
#define RIFFLE_TEXT_OF(value) #value
#define RIFFLE_TEXT(value) RIFFLE_TEXT_OF(value)

namespace riffle {

std::vector<Library> image_libraries() {
  Library heif{"libheif", {}, "HEIC and AVIF pictures"};
#ifdef RIFFLE_HEIF
  heif.version = heif_get_version();
#endif
  return {{"libjpeg-turbo", RIFFLE_TEXT(LIBJPEG_TURBO_VERSION), {}},
          {"libpng", png_get_libpng_ver(nullptr), {}},
          heif};
}

}  // namespace riffle
