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

  // The first `slots` slots. May be a view of the store's own memory.
  virtual NamedTensors save(std::int64_t slots) const = 0;
  // Throws Error when the state is damaged or of another size.
  virtual void restore(const NamedTensors& state) = 0;
};

// Pictures as they are, in one slab of host or GPU memory. get() copies nothing.
class RawStore : public Store {
 public:
  // `batch`: the most samples in one put. `device`: the GPU for memory gpu.
  RawStore(std::int64_t slots, std::int64_t batch, int picture_size, BufferMemory memory,
           at::Device device);

  void put(std::span<const std::int64_t> slots, std::span<const Sample> samples) override;
  Pictures get(std::span<const std::int64_t> slots) const override;
  NamedTensors save(std::int64_t slots) const override;
  void restore(const NamedTensors& state) override;

 private:
  at::Tensor slab_;
  at::Tensor
      staging_;  // [batch, side, side, 3] in host memory when the slab is not; else undefined
};

std::unique_ptr<Store> make_store(const BufferConfig& config, std::int64_t slots,
                                  std::int64_t batch, int picture_size, at::Device device);

}  // namespace riffle
