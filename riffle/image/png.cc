#include "riffle/image/png.h"

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <new>

#include <png.h>

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/image/decoding_memory.h"
#include "riffle/image/exif.h"

namespace riffle {
namespace {

// Deflate cannot do better than 1032 to 1, so fewer bytes than that cannot hold the rows that a
// header claims.
constexpr std::uint64_t kMaxInflation = 1032;
// As for a JPEG. A picture of one pixel a row would take longer by row, and more memory for rows
// than for pixels.
constexpr std::uint64_t kMaxSide = 65'535;
constexpr png_alloc_size_t kMaxChunkBytes = 8u << 20;

// libpng reports errors through a callback that must not return: it leaves by longjmp. The
// functions that call setjmp, and all between them and libpng, therefore own nothing with a
// destructor; what must be freed belongs to their callers.
struct PngErrors {
  std::jmp_buf escape;
  bool truncated = false;
  char message[256] = "";
};

[[noreturn]] void leave(png_structp png, png_const_charp message) {
  auto& errors = *static_cast<PngErrors*>(png_get_error_ptr(png));
  std::snprintf(errors.message, sizeof errors.message, "%s", message);
  std::longjmp(errors.escape, 1);
}

// Warnings are about chunks that carry no pixels (a bad colour profile, a text of the wrong
// length).
void ignore(png_structp, png_const_charp) {}

DecodeFailure explain(const PngErrors& errors) {
  return {errors.truncated ? "truncated" : "corrupt", errors.message};
}

struct Reader {
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::span<const std::byte> left;
  PngErrors errors;

  explicit Reader(std::span<const std::byte> bytes) : left(bytes) {}
  ~Reader() { png_destroy_read_struct(&png, &info, nullptr); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
};

void take_bytes(png_structp png, png_bytep out, std::size_t size) {
  auto& in = *static_cast<Reader*>(png_get_io_ptr(png));
  if (size > in.left.size()) {
    in.errors.truncated = true;
    png_error(png, "the file ends too early");
  }
  std::memcpy(out, in.left.data(), size);
  in.left = in.left.subspan(size);
}

bool read_header(Reader& in) {
  // Profiles and texts can be large when unpacked, and no pixel depends on them.
  static constexpr std::array<png_byte, 20> kUnread = {
      'i', 'C', 'C', 'P', 0, 't', 'E', 'X', 't', 0, 'z', 'T', 'X', 't', 0, 'i', 'T', 'X', 't', 0};
  if (setjmp(in.errors.escape) != 0) return false;
  in.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &in.errors, leave, ignore);
  if (in.png == nullptr) return false;
  in.info = png_create_info_struct(in.png);
  if (in.info == nullptr) png_error(in.png, "no memory");
  png_set_user_limits(in.png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
  png_set_chunk_malloc_max(in.png, kMaxChunkBytes);
  png_set_keep_unknown_chunks(in.png, PNG_HANDLE_CHUNK_NEVER, kUnread.data(),
                              static_cast<int>(kUnread.size() / 5));
  png_set_read_fn(in.png, &in, take_bytes);
  png_read_info(in.png, in.info);
  return true;
}

// Whatever is stored, rows come out as 8-bit RGB.
bool ask_for_rgb(Reader& in) {
  if (setjmp(in.errors.escape) != 0) return false;
  png_set_scale_16(in.png);
  png_set_expand(in.png);
  png_set_gray_to_rgb(in.png);
  png_set_strip_alpha(in.png);
  png_set_interlace_handling(in.png);
  png_read_update_info(in.png, in.info);
  return true;
}

bool read_rows(Reader& in, std::span<png_bytep> rows) {
  if (setjmp(in.errors.escape) != 0) return false;
  png_read_image(in.png, rows.data());
  png_read_end(in.png, in.info);
  return true;
}

int orientation_in(Reader& in) {
#ifdef PNG_eXIf_SUPPORTED
  png_uint_32 size = 0;
  png_bytep exif = nullptr;
  if (png_get_eXIf_1(in.png, in.info, &size, &exif) != 0 && exif != nullptr) {
    return exif_orientation(std::as_bytes(std::span<const png_byte>(exif, size)));
  }
#else
  (void)in;
#endif
  return 1;
}

struct Writer {
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::vector<std::byte> bytes;
  PngErrors errors;

  Writer() = default;
  ~Writer() { png_destroy_write_struct(&png, &info); }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
};

void put_bytes(png_structp png, png_bytep data, std::size_t size) {
  auto& out = *static_cast<Writer*>(png_get_io_ptr(png));
  const auto* begin = reinterpret_cast<const std::byte*>(data);
  bool kept = true;
  try {
    out.bytes.insert(out.bytes.end(), begin, begin + size);
  } catch (const std::bad_alloc&) {
    kept = false;  // an exception cannot pass through libpng
  }
  if (!kept) png_error(png, "no memory");
}

void put_nothing(png_structp) {}

bool write_all(Writer& out, const Picture& picture) {
  if (setjmp(out.errors.escape) != 0) return false;
  out.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &out.errors, leave, ignore);
  if (out.png == nullptr) return false;
  out.info = png_create_info_struct(out.png);
  if (out.info == nullptr) png_error(out.png, "no memory");
  png_set_write_fn(out.png, &out, put_bytes, put_nothing);
  png_set_IHDR(out.png, out.info, static_cast<png_uint_32>(picture.width),
               static_cast<png_uint_32>(picture.height), 8, PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(out.png, out.info);
  for (int y = 0; y < picture.height; ++y) png_write_row(out.png, picture.at(0, y));
  png_write_end(out.png, out.info);
  return true;
}

}  // namespace

std::optional<Picture> decode_png(std::span<const std::byte> bytes, const DecodeOptions& options,
                                  DecodeFailure& failure) {
  Reader in(bytes);
  const auto give_up = [&] {
    failure = explain(in.errors);
    return std::nullopt;
  };
  if (!read_header(in)) return give_up();

  const std::uint64_t width = png_get_image_width(in.png, in.info);
  const std::uint64_t height = png_get_image_height(in.png, in.info);
  const auto claim = cat("claims ", width, " x ", height, " pixels");
  if (std::max(width, height) > kMaxSide ||
      width * height > static_cast<std::uint64_t>(std::max<std::int64_t>(0, options.max_pixels))) {
    failure = {"too large", claim};
    return std::nullopt;
  }
  if (png_get_rowbytes(in.png, in.info) * height / kMaxInflation > bytes.size()) {
    failure = {"truncated", cat(claim, " in ", bytes.size(), " bytes")};
    return std::nullopt;
  }
  if (!ask_for_rgb(in)) return give_up();
  if (png_get_rowbytes(in.png, in.info) != width * 3) {
    failure = {"unsupported", "does not convert to 8-bit RGB"};
    return std::nullopt;
  }

  const DecodingMemory memory(width * height * 3);
  Picture picture(static_cast<int>(width), static_cast<int>(height));
  std::vector<png_bytep> rows(height);
  for (std::size_t y = 0; y < height; ++y) rows[y] = picture.at(0, static_cast<int>(y));
  if (!read_rows(in, rows)) return give_up();
  return turn_upright(std::move(picture), orientation_in(in));
}

std::vector<std::byte> encode_png(const Picture& picture) {
  Writer out;
  if (!write_all(out, picture)) {
    throw Error(cat("cannot write a PNG of ", picture.width, " x ", picture.height,
                    " pixels: ", out.errors.message));
  }
  return std::move(out.bytes);
}

}  // namespace riffle
