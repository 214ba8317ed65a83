#include "riffle/image/testing/generated_files.h"

#include <cstdio>
#include <cstdlib>

#include <png.h>

// jpeglib.h needs FILE declared before it.
#include <algorithm>
#include <array>

#include <jpeglib.h>

namespace riffle {

Picture generated_picture(int width, int height) {
  Picture picture(width, height);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const bool corner = x < width / 3 && y < height / 4;
      std::uint8_t* pixel = picture.at(x, y);
      pixel[0] = static_cast<std::uint8_t>(corner ? 230 : 20 + 180 * x / width);
      pixel[1] = static_cast<std::uint8_t>(corner ? 230 : 20 + 180 * y / height);
      pixel[2] = static_cast<std::uint8_t>(corner ? 200 : 90);
    }
  }
  return picture;
}

std::vector<std::byte> generated_exif(int orientation, bool little_endian) {
  std::vector<std::byte> bytes;
  const auto put = [&](std::uint32_t value, int size) {
    for (int i = 0; i < size; ++i) {
      const int shift = 8 * (little_endian ? i : size - 1 - i);
      bytes.push_back(static_cast<std::byte>(value >> shift & 0xff));
    }
  };
  put(little_endian ? 0x4949 : 0x4d4d, 2);
  put(42, 2);
  put(8, 4);  // where the directory is
  put(2, 2);  // entries
  put(0x0100, 2);
  put(4, 2);
  put(1, 4);
  put(640, 4);
  put(0x0112, 2);
  put(3, 2);
  put(1, 4);
  put(static_cast<std::uint32_t>(orientation), 2);
  put(0, 2);
  put(0, 4);  // no further directory
  return bytes;
}

std::vector<std::byte> generated_jpeg(const Picture& picture, const JpegKind& kind) {
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&jpeg, &memory, &size);
  jpeg.image_width = static_cast<JDIMENSION>(picture.width);
  jpeg.image_height = static_cast<JDIMENSION>(picture.height);
  const bool inks = kind.colours == JpegColours::cmyk || kind.colours == JpegColours::ycck;
  const int channels = inks ? 4 : kind.colours == JpegColours::grey ? 1 : 3;
  jpeg.input_components = channels;
  jpeg.in_color_space = inks ? JCS_CMYK : channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&jpeg);
  if (kind.colours == JpegColours::ycck) jpeg_set_colorspace(&jpeg, JCS_YCCK);
  jpeg_set_quality(&jpeg, 95, TRUE);
  if (kind.progressive) jpeg_simple_progression(&jpeg);
  std::array<jpeg_scan_info, 4> scans{};
  if (kind.scan_per_channel) {
    for (int c = 0; c < jpeg.num_components; ++c) {
      scans[static_cast<std::size_t>(c)] = {1, {c}, 0, 63, 0, 0};
    }
    jpeg.scan_info = scans.data();
    jpeg.num_scans = jpeg.num_components;
  }
  if (!kind.halved_chroma) {
    for (int c = 0; c < jpeg.num_components; ++c) {
      jpeg.comp_info[c].h_samp_factor = jpeg.comp_info[c].v_samp_factor = 1;
    }
  }
  jpeg_start_compress(&jpeg, TRUE);
  if (!kind.exif.empty()) {
    std::vector<unsigned char> marker = {'E', 'x', 'i', 'f', 0, 0};
    for (const auto byte : kind.exif) marker.push_back(static_cast<unsigned char>(byte));
    jpeg_write_marker(&jpeg, JPEG_APP0 + 1, marker.data(), static_cast<unsigned>(marker.size()));
  }
  std::vector<std::uint8_t> line(static_cast<std::size_t>(picture.width * channels));
  for (int y = 0; y < picture.height; ++y) {
    for (int x = 0; x < picture.width; ++x) {
      std::uint8_t* to = line.data() + x * channels;
      std::copy_n(picture.at(x, y), std::min(channels, 3), to);
      if (inks) to[3] = kind.black;
    }
    JSAMPROW row = line.data();
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  const auto* begin = reinterpret_cast<const std::byte*>(memory);
  std::vector<std::byte> bytes(begin, begin + size);
  std::free(memory);
  return bytes;
}

std::vector<std::byte> generated_png(int width, int height, const PngKind& kind,
                                     const std::function<unsigned(int, int, int)>& value) {
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  std::vector<std::byte> bytes;
  png_set_write_fn(
      png, &bytes,
      [](png_structp from, png_bytep data, std::size_t size) {
        auto& to = *static_cast<std::vector<std::byte>*>(png_get_io_ptr(from));
        const auto* begin = reinterpret_cast<const std::byte*>(data);
        to.insert(to.end(), begin, begin + size);
      },
      [](png_structp) {});
  png_set_IHDR(png, info, static_cast<png_uint_32>(width), static_cast<png_uint_32>(height),
               kind.depth, kind.colour_type,
               kind.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  std::vector<png_color> palette(std::size_t{1} << kind.depth % 16);
  if (kind.colour_type == PNG_COLOR_TYPE_PALETTE) {
    for (std::size_t i = 0; i < palette.size(); ++i) {
      palette[i] = {static_cast<png_byte>(i), static_cast<png_byte>(255 - i),
                    static_cast<png_byte>(7 * i)};
    }
    png_set_PLTE(png, info, palette.data(), static_cast<int>(palette.size()));
  }
  if (kind.transparent_colour) {
    std::vector<png_byte> alphas = {0, 128};
    png_color_16 colour{};
    png_set_tRNS(png, info, alphas.data(), 2, &colour);
  }
  std::vector<png_byte> exif;
  for (const auto byte : kind.exif) exif.push_back(static_cast<png_byte>(byte));
  if (!exif.empty()) png_set_eXIf_1(png, info, static_cast<png_uint_32>(exif.size()), exif.data());
  png_write_info(png, info);
  if (kind.depth < 8) png_set_packing(png);

  const int channels = png_get_channels(png, info);
  std::vector<std::vector<png_byte>> rows(static_cast<std::size_t>(height));
  std::vector<png_bytep> pointers;
  for (int y = 0; y < height; ++y) {
    auto& row = rows[static_cast<std::size_t>(y)];
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < channels; ++c) {
        const unsigned sample = value(x, y, c);
        if (kind.depth == 16) row.push_back(static_cast<png_byte>(sample >> 8));
        row.push_back(static_cast<png_byte>(sample & 0xff));
      }
    }
    pointers.push_back(row.data());
  }
  png_write_image(png, pointers.data());
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return bytes;
}

void repair_checksums(std::vector<std::byte>& png) {
  const auto number_at = [&](std::size_t offset) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      value = value << 8 | static_cast<std::uint32_t>(png[offset + i]);
    }
    return value;
  };
  for (std::size_t chunk = 8; chunk + 12 <= png.size();) {
    const std::size_t length = number_at(chunk);
    if (length > png.size() - chunk - 12) return;
    std::uint32_t crc = 0xffffffff;
    for (std::size_t i = chunk + 4; i < chunk + 8 + length; ++i) {
      crc ^= static_cast<std::uint32_t>(png[i]);
      for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
    }
    crc = ~crc;
    for (std::size_t i = 0; i < 4; ++i) {
      png[chunk + 8 + length + i] = static_cast<std::byte>(crc >> (24 - 8 * i) & 0xff);
    }
    chunk += 12 + length;
  }
}

}  // namespace riffle
