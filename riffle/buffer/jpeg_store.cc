#include "riffle/buffer/jpeg_store.h"

#include <algorithm>
#include <cstring>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/image/codec.h"

namespace riffle {
namespace {

constexpr int kQualityStep = 10;

std::vector<std::byte> encode_to_fit(const Picture& picture, int quality, std::size_t limit) {
  while (true) {
    auto bytes = encode_jpeg(picture, quality);
    if (bytes.size() <= limit) return bytes;
    if (quality == 1) {
      throw Error(cat("a picture of ", picture.width, " px does not fit into ", limit,
                      " bytes as JPEG; use buffer.storage=raw"),
                  ErrorKind::failure);
    }
    quality = std::max(1, quality - kQualityStep);
  }
}

}  // namespace

std::int64_t JpegStore::cell_bytes(int picture_size) {
  const std::int64_t raw = std::int64_t{3} * picture_size * picture_size;
  return (raw / 8 + 1024 + 63) / 64 * 64;
}

JpegStore::JpegStore(std::int64_t slots, int picture_size, int quality)
    : picture_size_(picture_size),
      quality_(quality),
      cells_(at::zeros({slots, cell_bytes(picture_size)}, at::kByte)),
      lengths_(at::zeros({slots}, at::kLong)) {}

void JpegStore::put(std::span<const std::int64_t> slots, const at::Tensor& pictures) {
  const at::Tensor here = pictures.cpu();
  const auto* from = here.const_data_ptr<std::uint8_t>();
  auto* cells = cells_.mutable_data_ptr<std::uint8_t>();
  auto* lengths = lengths_.mutable_data_ptr<std::int64_t>();
  const auto cell = cells_.size(1);
  at::parallel_for(0, static_cast<std::int64_t>(slots.size()), 1, [&](auto begin, auto end) {
    Picture picture(picture_size_, picture_size_);
    for (auto i = begin; i < end; ++i) {
      const auto slot = slots[static_cast<std::size_t>(i)];
      std::memcpy(picture.rgb.data(), from + static_cast<std::size_t>(i) * picture.rgb.size(),
                  picture.rgb.size());
      const auto bytes = encode_to_fit(picture, quality_, static_cast<std::size_t>(cell));
      auto* target = cells + slot * cell;
      std::memcpy(target, bytes.data(), bytes.size());
      // What a longer picture left behind would make saved states differ for no reason.
      std::memset(target + bytes.size(), 0, static_cast<std::size_t>(cell) - bytes.size());
      lengths[slot] = static_cast<std::int64_t>(bytes.size());
    }
  });
}

Pictures JpegStore::get(std::span<const std::int64_t> slots) const {
  const auto count = static_cast<std::int64_t>(slots.size());
  Pictures pictures{at::empty({count, picture_size_, picture_size_, 3}, at::kByte), {}};
  auto* target = pictures.tensor.mutable_data_ptr<std::uint8_t>();
  const auto* cells = cells_.const_data_ptr<std::uint8_t>();
  const auto* lengths = lengths_.const_data_ptr<std::int64_t>();
  const auto cell = cells_.size(1);
  const auto raw = static_cast<std::size_t>(picture_size_) * picture_size_ * 3;
  at::parallel_for(0, count, 1, [&](auto begin, auto end) {
    for (auto i = begin; i < end; ++i) {
      const auto slot = slots[static_cast<std::size_t>(i)];
      const std::span bytes(reinterpret_cast<const std::byte*>(cells + slot * cell),
                            static_cast<std::size_t>(lengths[slot]));
      DecodeFailure failure;
      const auto picture = decode(bytes, DecodeOptions{}, failure);
      if (!picture || picture->rgb.size() != raw) {
        throw Error(cat("the JPEG kept in slot ", slot, " cannot be decoded: ", failure.reason),
                    ErrorKind::failure);
      }
      std::memcpy(target + static_cast<std::size_t>(i) * raw, picture->rgb.data(), raw);
    }
  });
  for (std::int64_t i = 0; i < count; ++i) pictures.indices.push_back(i);
  return pictures;
}

at::Tensor JpegStore::read(std::span<const std::int64_t> slots) const {
  const auto rows = integers_tensor(slots);
  const auto lengths = lengths_.index_select(0, rows).view(at::kByte).view({-1, 8});
  return at::cat({lengths, cells_.index_select(0, rows)}, 1);
}

void JpegStore::write(std::span<const std::int64_t> slots, const at::Tensor& stored) {
  require_stored(stored, slots.size(), stored_bytes());
  const auto lengths = stored.narrow(1, 0, 8).contiguous().view(at::kLong).view({-1});
  if (lengths.lt(0).any().item<bool>() || lengths.gt(cells_.size(1)).any().item<bool>()) {
    throw Error(cat("saved state: a JPEG is longer than its cell of ", cells_.size(1), " bytes"));
  }
  const auto rows = integers_tensor(slots);
  lengths_.index_copy_(0, rows, lengths);
  cells_.index_copy_(0, rows, stored.narrow(1, 8, cells_.size(1)));
}

}  // namespace riffle
