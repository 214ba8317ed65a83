#include "riffle/buffer/store.h"

#include <cstring>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/buffer/jpeg_store.h"

namespace riffle {

at::Tensor wide_rows(const at::Tensor& pictures) {
  const at::Tensor bytes = pictures.flatten(1);
  return bytes.size(1) % 8 == 0 ? bytes.view(at::kLong) : bytes;
}

RawStore::RawStore(std::int64_t slots, int picture_size, BufferMemory memory, at::Device device) {
  // Zeroed, so that the memory is really there from the start and saved state is the same in every
  // run.
  slab_ = at::zeros({slots, picture_size, picture_size, 3},
                    at::TensorOptions().dtype(at::kByte).device(
                        memory == BufferMemory::gpu ? device : at::Device(at::kCPU)));
}

at::Tensor RawStore::rows(std::span<const std::int64_t> slots) const {
  return integers_tensor(slots).to(slab_.device(), /*non_blocking=*/true);
}

void RawStore::put(std::span<const std::int64_t> slots, const at::Tensor& pictures) {
  if (slab_.is_cuda()) {
    wide_rows(slab_).index_copy_(0, rows(slots), wide_rows(pictures.to(slab_.device())));
    return;
  }
  const at::Tensor here = pictures.cpu();
  const auto* from = here.const_data_ptr<std::uint8_t>();
  auto* to = slab_.mutable_data_ptr<std::uint8_t>();
  const auto bytes = static_cast<std::size_t>(slab_.stride(0));
  // A batch of large pictures is more than one core copies in the time of an update.
  constexpr std::size_t kBytesATask = std::size_t{1} << 20;
  const auto grain = static_cast<std::int64_t>(kBytesATask / bytes + 1);
  at::parallel_for(
      0, static_cast<std::int64_t>(slots.size()), grain, [&](std::int64_t begin, std::int64_t end) {
        for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
          std::memcpy(to + static_cast<std::size_t>(slots[i]) * bytes, from + i * bytes, bytes);
        }
      });
}

Pictures RawStore::get(std::span<const std::int64_t> slots) const {
  return {slab_, {slots.begin(), slots.end()}};
}

at::Tensor RawStore::read(std::span<const std::int64_t> slots) const {
  return wide_rows(slab_).index_select(0, rows(slots)).view(at::kByte);
}

void RawStore::write(std::span<const std::int64_t> slots, const at::Tensor& stored) {
  require_stored(stored, slots.size(), stored_bytes());
  wide_rows(slab_).index_copy_(0, rows(slots), wide_rows(stored.to(slab_.device())));
}

void require_stored(const at::Tensor& stored, std::size_t slots, std::int64_t bytes) {
  const std::vector<std::int64_t> shape = {static_cast<std::int64_t>(slots), bytes};
  if (stored.scalar_type() == at::kByte && stored.sizes() == at::IntArrayRef(shape)) return;
  throw Error(cat("saved state: pictures are ", stored.toString(), " ", stored.sizes(),
                  ", where bytes of shape ", at::IntArrayRef(shape), " are needed"));
}

std::unique_ptr<Store> make_store(const BufferConfig& config, std::int64_t slots, int picture_size,
                                  at::Device device) {
  if (config.storage == Storage::jpeg) {
    return std::make_unique<JpegStore>(slots, picture_size, static_cast<int>(config.jpeg_quality));
  }
  return std::make_unique<RawStore>(slots, picture_size, config.memory, device);
}

}  // namespace riffle
