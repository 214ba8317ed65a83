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
#include "riffle/tensors/named_tensors.h"

namespace riffle {

// Pictures as rows of a tensor: picture i of those asked for is tensor[indices[i]].
struct Pictures {
  at::Tensor tensor;  // [rows, side, side, 3] uint8, contiguous
  std::vector<std::int64_t> indices;
  // The same for the pictures that second views are made of; empty: the same pictures.
  std::vector<std::int64_t> second = {};
};

// Returns the same bytes as rows of wider numbers, which are copied in fewer steps.
at::Tensor wide_rows(const at::Tensor& pictures);

class Store {
 public:
  virtual ~Store() = default;

  // Takes pictures, [slots, side, side, 3] uint8 in host or GPU memory, into these slots.
  virtual void put(std::span<const std::int64_t> slots, const at::Tensor& pictures) = 0;

  virtual Pictures get(std::span<const std::int64_t> slots) const = 0;
  // In whose memory pictures are kept.
  virtual at::Device device() const = 0;

  // Pictures as they are kept, for files: [slots, stored_bytes] uint8, a copy in the memory they
  // lie in. write() takes back what read() returned, into any slots and from any memory. Throws
  // Error if it is damaged or of another size.
  virtual std::int64_t stored_bytes() const = 0;
  virtual at::Tensor read(std::span<const std::int64_t> slots) const = 0;
  virtual void write(std::span<const std::int64_t> slots, const at::Tensor& stored) = 0;
  // Copies pictures as they are kept. Requires as many slots to copy to as from, and none in both.
  virtual void copy(std::span<const std::int64_t> from, std::span<const std::int64_t> to) {
    write(to, read(from));
  }
};

// Pictures as they are, in one slab of host or GPU memory. get() copies nothing.
class RawStore : public Store {
 public:
  // `device`: the GPU for memory gpu.
  RawStore(std::int64_t slots, int picture_size, BufferMemory memory, at::Device device);

  void put(std::span<const std::int64_t> slots, const at::Tensor& pictures) override;
  Pictures get(std::span<const std::int64_t> slots) const override;
  at::Device device() const override { return slab_.device(); }
  std::int64_t stored_bytes() const override { return slab_.stride(0); }
  at::Tensor read(std::span<const std::int64_t> slots) const override;
  void write(std::span<const std::int64_t> slots, const at::Tensor& stored) override;

 private:
  at::Tensor rows(std::span<const std::int64_t> slots) const;

  at::Tensor slab_;
};

// Throws Error unless `stored` has a row of `bytes` bytes for each of `slots` slots.
void require_stored(const at::Tensor& stored, std::size_t slots, std::int64_t bytes);

std::unique_ptr<Store> make_store(const BufferConfig& config, std::int64_t slots, int picture_size,
                                  at::Device device);

}  // namespace riffle
