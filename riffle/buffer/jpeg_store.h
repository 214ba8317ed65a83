// Pictures as JPEG, for buffers too large for memory otherwise. Lossy; get() decodes, on all of
// LibTorch's threads.
//
// Every slot has a cell of the same size (an eighth of the raw picture and 1 KiB), so memory is
// bounded whatever comes: a picture that is larger at the quality asked for is encoded at the
// highest lower one, of a fixed ladder, at which it fits.
#pragma once

#include "riffle/buffer/store.h"

namespace riffle {

class JpegStore : public Store {
 public:
  JpegStore(std::int64_t slots, int picture_size, int quality);

  static std::int64_t cell_bytes(int picture_size);

  void put(std::span<const std::int64_t> slots, const at::Tensor& pictures) override;
  Pictures get(std::span<const std::int64_t> slots) const override;
  at::Device device() const override { return at::kCPU; }
  // The length as eight bytes, then the cell.
  std::int64_t stored_bytes() const override { return 8 + cells_.size(1); }
  at::Tensor read(std::span<const std::int64_t> slots) const override;
  void write(std::span<const std::int64_t> slots, const at::Tensor& stored) override;

 private:
  int picture_size_;
  int quality_;
  at::Tensor cells_;    // [slots, cell_bytes] uint8
  at::Tensor lengths_;  // [slots] int64: bytes used of each cell
};

}  // namespace riffle
