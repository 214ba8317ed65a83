#include "riffle/image/heif.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>

#ifdef RIFFLE_HEIF
#include <libheif/heif.h>
#endif

#include "riffle/base/text.h"
#include "riffle/image/decoding_memory.h"

namespace riffle {

bool is_heif(std::span<const std::byte> bytes) {
  static constexpr std::array<std::string_view, 5> kBrands = {"hei", "hev", "mif1", "msf1", "avi"};
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()),
                              std::min<std::size_t>(bytes.size(), 12));
  if (text.size() < 12 || text.substr(4, 4) != "ftyp") return false;
  return std::ranges::any_of(
      kBrands, [&](std::string_view brand) { return text.substr(8).starts_with(brand); });
}

#ifdef RIFFLE_HEIF

namespace {

template <auto kFree>
struct FreedBy {
  template <typename Held>
  void operator()(Held* held) const {
    kFree(held);
  }
};

using HeifContext = std::unique_ptr<heif_context, FreedBy<heif_context_free>>;
using HeifHandle = std::unique_ptr<heif_image_handle, FreedBy<heif_image_handle_release>>;
using HeifImage = std::unique_ptr<heif_image, FreedBy<heif_image_release>>;
using HeifOptions = std::unique_ptr<heif_decoding_options, FreedBy<heif_decoding_options_free>>;

DecodeFailure heif_failure(const heif_error& error) {
  const bool unknown =
      error.code == heif_error_Unsupported_feature || error.code == heif_error_Unsupported_filetype;
  return {unknown ? "unsupported" : "corrupt", error.message};
}

}  // namespace

std::optional<Picture> decode_heif(std::span<const std::byte> bytes, const DecodeOptions& options,
                                   DecodeFailure& failure) {
  const auto fails = [&failure](const heif_error& error) {
    if (error.code == heif_error_Ok) return false;
    failure = heif_failure(error);
    return true;
  };
  const HeifContext context(heif_context_alloc());
  // Pictures are decoded by several threads as it is.
  heif_context_set_max_decoding_threads(context.get(), 0);
  if (fails(heif_context_read_from_memory_without_copy(context.get(), bytes.data(), bytes.size(),
                                                       nullptr))) {
    return std::nullopt;
  }
  heif_image_handle* found = nullptr;
  if (fails(heif_context_get_primary_image_handle(context.get(), &found))) return std::nullopt;
  const HeifHandle handle(found);
  const auto pixels = std::int64_t{heif_image_handle_get_width(found)} *
                      std::int64_t{heif_image_handle_get_height(found)};
  if (pixels < 1 || pixels > options.max_pixels) {
    failure = {"too large", cat(heif_image_handle_get_width(found), " x ",
                                heif_image_handle_get_height(found), " pixels")};
    return std::nullopt;
  }
  constexpr std::uint64_t kBytesAPixel = 6 + 3 + 3;  // the decoder's, RGB from it, and the picture
  const DecodingMemory memory(static_cast<std::uint64_t>(pixels) * kBytesAPixel);
  const HeifOptions strict(heif_decoding_options_alloc());
  strict->convert_hdr_to_8bit = 1;
  strict->strict_decoding = 1;
  heif_image* decoded = nullptr;
  if (fails(heif_decode_image(found, &decoded, heif_colorspace_RGB, heif_chroma_interleaved_RGB,
                              strict.get()))) {
    return std::nullopt;
  }
  const HeifImage image(decoded);
  int stride = 0;
  const std::uint8_t* from =
      heif_image_get_plane_readonly(decoded, heif_channel_interleaved, &stride);
  const int width = heif_image_get_width(decoded, heif_channel_interleaved);
  const int height = heif_image_get_height(decoded, heif_channel_interleaved);
  // What the file claims and what it holds may differ.
  if (from == nullptr || width < 1 || height < 1 ||
      std::int64_t{width} * height > options.max_pixels) {
    failure = {"corrupt", "its pixels are not those that it claims"};
    return std::nullopt;
  }
  Picture picture(width, height);
  for (int y = 0; y < height; ++y) {
    std::copy_n(from + std::ptrdiff_t{y} * stride, std::ptrdiff_t{width} * 3, picture.at(0, y));
  }
  return picture;
}

#else

std::optional<Picture> decode_heif(std::span<const std::byte>, const DecodeOptions&,
                                   DecodeFailure& failure) {
  failure = {"unsupported",
             "a HEIC or AVIF picture; convert it to JPEG, or install libheif-dev and build again"};
  return std::nullopt;
}

#endif

}  // namespace riffle
