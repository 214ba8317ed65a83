#include "riffle/image/jpeg.h"

// jpeglib.h needs FILE and size_t declared before it.
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>

// clang-format off
#include <jpeglib.h>
#include <jerror.h>
// clang-format on

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string_view>

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/image/decoding_memory.h"
#include "riffle/image/exif.h"

namespace riffle {
namespace {

// A few bytes of padding before the end marker are common in photographs and cost no pixel; more
// means that the decoder lost its place.
constexpr int kPaddingTolerated = 16;
// A progressive file may hold any number of passes over the whole picture; real ones have about
// ten.
constexpr int kMaxScans = 100;
// A coded 8x8 block takes at least a bit (Huffman coding), so a file of n bytes holds at most 512 n
// pixels.
constexpr std::int64_t kMaxPixelsPerByte = 512;
constexpr std::array<unsigned char, 6> kExifMark = {'E', 'x', 'i', 'f', 0, 0};

// libjpeg reports through callbacks that must not return: they leave by longjmp. The functions that
// call setjmp, and all between them and libjpeg, therefore own nothing with a destructor; what must
// be freed belongs to their callers.
struct JpegErrors {
  jpeg_error_mgr manager;
  std::jmp_buf escape;
  int code = 0;
  bool too_many_scans = false;
  char message[JMSG_LENGTH_MAX] = "";
};

JpegErrors& errors_of(j_common_ptr common) {
  // The manager is the first member of JpegErrors, a standard-layout struct.
  return *reinterpret_cast<JpegErrors*>(common->err);
}

[[noreturn]] void leave(j_common_ptr common) {
  JpegErrors& errors = errors_of(common);
  errors.code = errors.manager.msg_code;
  errors.manager.format_message(common, errors.message);
  std::longjmp(errors.escape, 1);
}

void on_message(j_common_ptr common, int level) {
  if (level >= 0) return;
  const jpeg_error_mgr& manager = *common->err;
  // These cost no pixel: a colour transform, a version of JFIF, and parameters of a scan that have
  // only one meaning.
  for (const int harmless : {JWRN_ADOBE_XFORM, JWRN_JFIF_MAJOR, JWRN_NOT_SEQUENTIAL}) {
    if (manager.msg_code == harmless) return;
  }
  if (manager.msg_code == JWRN_EXTRANEOUS_DATA && manager.msg_parm.i[0] <= kPaddingTolerated &&
      manager.msg_parm.i[1] == JPEG_EOI) {
    return;
  }
  leave(common);
}

void on_progress(j_common_ptr common) {
  const auto* decompress = reinterpret_cast<j_decompress_ptr>(common);
  if (decompress->input_scan_number <= kMaxScans) return;
  JpegErrors& errors = errors_of(common);
  errors.too_many_scans = true;
  std::longjmp(errors.escape, 1);
}

void print_nothing(j_common_ptr) {}

void install(JpegErrors& errors) {
  jpeg_std_error(&errors.manager);
  errors.manager.error_exit = leave;
  errors.manager.emit_message = on_message;
  errors.manager.output_message = print_nothing;
}

DecodeFailure explain(const JpegErrors& errors) {
  if (errors.too_many_scans) return {"corrupt", cat("more than ", kMaxScans, " scans")};
  switch (errors.code) {
    case JWRN_JPEG_EOF:
    case JERR_INPUT_EMPTY:
    case JERR_INPUT_EOF:
      return {"truncated", errors.message};
    case JERR_IMAGE_TOO_BIG:
    case JERR_WIDTH_OVERFLOW:
    case JERR_OUT_OF_MEMORY:
      return {"too large", errors.message};
    case JERR_SOF_UNSUPPORTED:
    case JERR_BAD_PRECISION:
    case JERR_CONVERSION_NOTIMPL:
      return {"unsupported", errors.message};
    default:
      return {"corrupt", errors.message};
  }
}

// Throws Error if what failed is that the library is another one.
void require_match(const JpegErrors& errors) {
  if (errors.code != JERR_BAD_LIB_VERSION && errors.code != JERR_BAD_STRUCT_SIZE) return;
  throw Error(cat("riffle was built for another libjpeg than the one that is loaded (",
                  errors.message, "); install libjpeg-turbo again, or build riffle again"),
              ErrorKind::failure);
}

struct Decompressor {
  jpeg_decompress_struct jpeg{};
  jpeg_progress_mgr progress{};
  JpegErrors errors;

  Decompressor() {
    install(errors);
    jpeg.err = &errors.manager;
    progress.progress_monitor = on_progress;
  }
  ~Decompressor() { jpeg_destroy_decompress(&jpeg); }
  Decompressor(const Decompressor&) = delete;
  Decompressor& operator=(const Decompressor&) = delete;
};

bool read_header(Decompressor& in, std::span<const std::byte> bytes) {
  if (setjmp(in.errors.escape) != 0) return false;
  jpeg_CreateDecompress(&in.jpeg, jpeg_build().version, jpeg_build().decoder_bytes);
  in.jpeg.progress = &in.progress;
  jpeg_mem_src(&in.jpeg, reinterpret_cast<const unsigned char*>(bytes.data()),
               static_cast<unsigned long>(bytes.size()));
  jpeg_save_markers(&in.jpeg, JPEG_APP0 + 1, 0xFFFF);
  jpeg_read_header(&in.jpeg, TRUE);
  return true;
}

int orientation_in(const jpeg_decompress_struct& jpeg) {
  for (const auto* marker = jpeg.marker_list; marker != nullptr; marker = marker->next) {
    if (marker->data_length < kExifMark.size()) continue;
    if (std::memcmp(marker->data, kExifMark.data(), kExifMark.size()) != 0) continue;
    return exif_orientation(
        std::as_bytes(std::span(marker->data, marker->data_length)).subspan(kExifMark.size()));
  }
  return 1;
}

// Returns the largest of the cheap reductions (1/2, 1/4, 1/8) that leaves the short side at least
// as long as asked.
unsigned int reduction_for(const jpeg_decompress_struct& jpeg, int short_side) {
  if (short_side <= 0) return 1;
  const unsigned int available = std::min(jpeg.image_width, jpeg.image_height);
  unsigned int reduction = 8;
  while (reduction > 1 && available / reduction < static_cast<unsigned int>(short_side)) {
    reduction /= 2;
  }
  return reduction;
}

bool start(Decompressor& in) {
  if (setjmp(in.errors.escape) != 0) return false;
  jpeg_start_decompress(&in.jpeg);
  return true;
}

bool read_rgb(Decompressor& in, Picture& picture) {
  if (setjmp(in.errors.escape) != 0) return false;
  while (in.jpeg.output_scanline < in.jpeg.output_height) {
    // A few rows at a time: libjpeg hands out up to a row of blocks per call.
    std::array<JSAMPROW, 16> rows;
    const auto first = static_cast<int>(in.jpeg.output_scanline);
    const int count = std::min(static_cast<int>(rows.size()), picture.height - first);
    for (int i = 0; i < count; ++i) rows[static_cast<std::size_t>(i)] = picture.at(0, first + i);
    jpeg_read_scanlines(&in.jpeg, rows.data(), static_cast<JDIMENSION>(count));
  }
  jpeg_finish_decompress(&in.jpeg);
  return true;
}

// Returns a * b / 255, rounded, for a, b in 0..255.
std::uint8_t multiply(unsigned int a, unsigned int b) {
  const unsigned int product = a * b + 128;
  return static_cast<std::uint8_t>((product + (product >> 8)) >> 8);
}

// `row` is room for one line of CMYK. Writers store the inks inverted (255 is no ink), as Adobe's
// programs do.
bool read_cmyk(Decompressor& in, Picture& picture, std::span<std::uint8_t> row) {
  if (setjmp(in.errors.escape) != 0) return false;
  while (in.jpeg.output_scanline < in.jpeg.output_height) {
    std::uint8_t* out = picture.at(0, static_cast<int>(in.jpeg.output_scanline));
    JSAMPROW line = row.data();
    if (jpeg_read_scanlines(&in.jpeg, &line, 1) == 0) continue;
    for (const std::uint8_t* ink = row.data(); ink != row.data() + row.size(); ink += 4, out += 3) {
      for (int c = 0; c < 3; ++c) out[c] = multiply(ink[c], ink[3]);
    }
  }
  jpeg_finish_decompress(&in.jpeg);
  return true;
}

struct Compressor {
  jpeg_compress_struct jpeg{};
  JpegErrors errors;
  unsigned char* memory = nullptr;
  unsigned long size = 0;

  Compressor() {
    install(errors);
    jpeg.err = &errors.manager;
  }
  ~Compressor() {
    jpeg_destroy_compress(&jpeg);
    std::free(memory);
  }
  Compressor(const Compressor&) = delete;
  Compressor& operator=(const Compressor&) = delete;
};

bool write_all(Compressor& out, const Picture& picture, int quality) {
  if (setjmp(out.errors.escape) != 0) return false;
  jpeg_CreateCompress(&out.jpeg, jpeg_build().version, jpeg_build().encoder_bytes);
  jpeg_mem_dest(&out.jpeg, &out.memory, &out.size);
  out.jpeg.image_width = static_cast<JDIMENSION>(picture.width);
  out.jpeg.image_height = static_cast<JDIMENSION>(picture.height);
  out.jpeg.input_components = 3;
  out.jpeg.in_color_space = JCS_RGB;
  jpeg_set_defaults(&out.jpeg);
  jpeg_set_quality(&out.jpeg, quality, TRUE);
  jpeg_start_compress(&out.jpeg, TRUE);
  while (out.jpeg.next_scanline < out.jpeg.image_height) {
    // libjpeg does not write to what it compresses, but its row type is not const.
    JSAMPROW row =
        const_cast<std::uint8_t*>(picture.at(0, static_cast<int>(out.jpeg.next_scanline)));
    jpeg_write_scanlines(&out.jpeg, &row, 1);
  }
  jpeg_finish_compress(&out.jpeg);
  return true;
}

}  // namespace

std::optional<Picture> decode_jpeg(std::span<const std::byte> bytes, const DecodeOptions& options,
                                   DecodeFailure& failure) {
  Decompressor in;
  const auto give_up = [&] {
    require_match(in.errors);
    failure = explain(in.errors);
    return std::nullopt;
  };
  if (!read_header(in, bytes)) return give_up();

  auto& jpeg = in.jpeg;
  const auto claimed = std::int64_t{jpeg.image_width} * jpeg.image_height;
  const auto claim = cat("claims ", jpeg.image_width, " x ", jpeg.image_height, " pixels");
  if (claimed > options.max_pixels) {
    failure = {"too large", claim};
    return std::nullopt;
  }
  if (!jpeg.arith_code && claimed / kMaxPixelsPerByte > static_cast<std::int64_t>(bytes.size())) {
    failure = {"truncated", cat(claim, " in ", bytes.size(), " bytes")};
    return std::nullopt;
  }

  const bool inks = jpeg.jpeg_color_space == JCS_CMYK || jpeg.jpeg_color_space == JCS_YCCK;
  jpeg.out_color_space = inks ? JCS_CMYK : JCS_RGB;
  jpeg.scale_num = 1;
  jpeg.scale_denom = reduction_for(jpeg, options.short_side);
  const int orientation = orientation_in(jpeg);
  // A file of several scans is held as coefficients of two bytes until the last one.
  const std::int64_t coefficients =
      jpeg_has_multiple_scans(&jpeg) ? claimed * jpeg.num_components * 2 : 0;
  const std::int64_t pixels = claimed / jpeg.scale_denom / jpeg.scale_denom;
  const DecodingMemory memory(static_cast<std::uint64_t>(coefficients + pixels * 3));
  if (!start(in)) return give_up();

  Picture picture(static_cast<int>(jpeg.output_width), static_cast<int>(jpeg.output_height));
  if (inks) {
    std::vector<std::uint8_t> row(std::size_t{jpeg.output_width} * 4);
    if (!read_cmyk(in, picture, row)) return give_up();
  } else if (!read_rgb(in, picture)) {
    return give_up();
  }
  return turn_upright(std::move(picture), orientation);
}

void require_jpeg() {
  DecodeFailure ignored;
  decode_jpeg(encode_jpeg(Picture(1, 1), 90), {}, ignored);
}

JpegBuild& jpeg_build() {
  static JpegBuild build{JPEG_LIB_VERSION, sizeof(jpeg_decompress_struct),
                         sizeof(jpeg_compress_struct)};
  return build;
}

std::vector<std::byte> encode_jpeg(const Picture& picture, int quality) {
  if (quality < 1 || quality > 100) throw std::logic_error("JPEG quality is not in 1..100");
  Compressor out;
  if (!write_all(out, picture, quality)) {
    require_match(out.errors);
    throw Error(cat("cannot write a JPEG of ", picture.width, " x ", picture.height,
                    " pixels: ", out.errors.message));
  }
  const auto* begin = reinterpret_cast<const std::byte*>(out.memory);
  return {begin, begin + out.size};
}

}  // namespace riffle
