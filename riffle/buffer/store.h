// Where the pictures of a replay buffer live.
//
// All memory is taken at construction. A slot's picture stays until another is put there. Used by
// one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include "riffle/buffer/buffer_config.h"
#include "riffle/buffer/named_tensors.h"
#include "riffle/stream/stream.h"

namespace riffle {

// Pictures as rows of a tensor: picture i of those asked for is tensor[indices[i]].
struct Pictures {
  at::Tensor tensor;  // [rows, side, side, 3] uint8, contiguous
  std::vector<std::int64_t> indices;
};

class Store {
 public:
  virtual ~Store() = default;

  // Takes the samples' pictures, which are side x side, into the slots of the same places.
  virtual void put(std::span<const std::int64_t> slots, std::span<const Sample> samples) = 0;

  virtual Pictures get(std::span<const std::int64_t> slots) const = 0;

  // Pictures as they are kept, for files: [slots, stored_bytes] uint8 in host memory, a copy. What
  // read() gave, write() takes back, into any slots; it throws Error for what is damaged or of
  // another size.
  virtual std::int64_t stored_bytes() const = 0;
  virtual at::Tensor read(std::span<const std::int64_t> slots) const = 0;
  virtual void write(std::span<const std::int64_t> slots, const at::Tensor& stored) = 0;
};

// Pictures as they are, in one slab of host or GPU memory. get() copies nothing.
class RawStore : public Store {
 public:
  // `batch`: the most samples in one put. `device`: the GPU for memory gpu.
  RawStore(std::int64_t slots, std::int64_t batch, int picture_size, BufferMemory memory,
           at::Device device);

  void put(std::span<const std::int64_t> slots, std::span<const Sample> samples) override;
  Pictures get(std::span<const std::int64_t> slots) const override;
  std::int64_t stored_bytes() const override { return slab_.stride(0); }
  at::Tensor read(std::span<const std::int64_t> slots) const override;
  void write(std::span<const std::int64_t> slots, const at::Tensor& stored) override;

 private:
  at::Tensor slab_;
  at::Tensor
      staging_;  // [batch, side, side, 3] in host memory when the slab is not; else undefined
};

// Throws Error unless `stored` has a row of `bytes` bytes for each of `slots` slots.
void require_stored(const at::Tensor& stored, std::size_t slots, std::int64_t bytes);

std::unique_ptr<Store> make_store(const BufferConfig& config, std::int64_t slots,
                                  std::int64_t batch, int picture_size, at::Device device);

}  // namespace riffle
