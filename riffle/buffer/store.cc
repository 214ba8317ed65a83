#include "riffle/buffer/store.h"

#include <cstring>

#include <torch/torch.h>

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/buffer/jpeg_store.h"

namespace riffle {

RawStore::RawStore(std::int64_t slots, std::int64_t batch, int picture_size, BufferMemory memory,
                   at::Device device) {
  const auto options = at::TensorOptions().dtype(at::kByte);
  // Zeroed, so that the memory is really there from the start and saved state is the same in every
  // run.
  if (memory == BufferMemory::gpu) {
    slab_ = at::zeros({slots, picture_size, picture_size, 3}, options.device(device));
    staging_ = at::zeros({batch, picture_size, picture_size, 3}, options.pinned_memory(true));
  } else {
    slab_ = at::zeros({slots, picture_size, picture_size, 3},
                      options.pinned_memory(memory == BufferMemory::pinned));
  }
}

void RawStore::put(std::span<const std::int64_t> slots, std::span<const Sample> samples) {
  auto& target = staging_.defined() ? staging_ : slab_;
  auto* pictures = target.mutable_data_ptr<std::uint8_t>();
  const auto bytes = static_cast<std::size_t>(target.stride(0));
  // A batch of large pictures is more than one core copies in the time of an update.
  constexpr std::size_t kBytesATask = std::size_t{1} << 20;
  const auto count = static_cast<std::int64_t>(samples.size());
  const auto grain = static_cast<std::int64_t>(kBytesATask / bytes + 1);
  at::parallel_for(0, count, grain, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      const auto row = staging_.defined() ? i : static_cast<std::size_t>(slots[i]);
      std::memcpy(pictures + row * bytes, samples[i].picture.rgb.data(), bytes);
    }
  });
  if (staging_.defined()) {
    slab_.index_copy_(0, integers_tensor(slots).to(slab_.device()),
                      staging_.narrow(0, 0, count).to(slab_.device(), /*non_blocking=*/true));
  }
}

Pictures RawStore::get(std::span<const std::int64_t> slots) const {
  return {slab_, {slots.begin(), slots.end()}};
}

at::Tensor RawStore::read(std::span<const std::int64_t> slots) const {
  const auto rows = slab_.view({slab_.size(0), stored_bytes()});
  return rows.index_select(0, integers_tensor(slots).to(slab_.device())).cpu();
}

void RawStore::write(std::span<const std::int64_t> slots, const at::Tensor& stored) {
  require_stored(stored, slots.size(), stored_bytes());
  slab_.view({slab_.size(0), stored_bytes()})
      .index_copy_(0, integers_tensor(slots).to(slab_.device()), stored.to(slab_.device()));
}

void require_stored(const at::Tensor& stored, std::size_t slots, std::int64_t bytes) {
  const std::vector<std::int64_t> shape = {static_cast<std::int64_t>(slots), bytes};
  if (stored.scalar_type() == at::kByte && stored.sizes() == at::IntArrayRef(shape)) return;
  throw Error(cat("saved state: pictures are ", stored.toString(), " ", stored.sizes(),
                  ", where bytes of shape ", at::IntArrayRef(shape), " are needed"));
}

std::unique_ptr<Store> make_store(const BufferConfig& config, std::int64_t slots,
                                  std::int64_t batch, int picture_size, at::Device device) {
  if (config.storage == Storage::jpeg) {
    return std::make_unique<JpegStore>(slots, picture_size, static_cast<int>(config.jpeg_quality));
  }
  return std::make_unique<RawStore>(slots, batch, picture_size, config.memory, device);
}

}  // namespace riffle
