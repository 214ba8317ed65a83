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
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const auto row = staging_.defined() ? i : static_cast<std::size_t>(slots[i]);
    std::memcpy(pictures + row * bytes, samples[i].picture.rgb.data(), bytes);
  }
  if (staging_.defined()) {
    const auto count = static_cast<std::int64_t>(samples.size());
    slab_.index_copy_(0, integers_tensor(slots).to(slab_.device()),
                      staging_.narrow(0, 0, count).to(slab_.device()));
  }
}

Pictures RawStore::get(std::span<const std::int64_t> slots) const {
  return {slab_, {slots.begin(), slots.end()}};
}

NamedTensors RawStore::save(std::int64_t slots) const {
  return {{"pictures", slab_.narrow(0, 0, slots).cpu()}};
}

void RawStore::restore(const NamedTensors& state) {
  const auto& pictures = find_tensor(state, "pictures");
  if (pictures.scalar_type() != at::kByte || pictures.dim() != 4 ||
      pictures.size(0) > slab_.size(0) || pictures.sizes().slice(1) != slab_.sizes().slice(1)) {
    throw Error(cat("saved state: pictures are ", pictures.toString(), " ", pictures.sizes(),
                    ", which does not fit into ", slab_.sizes()));
  }
  slab_.narrow(0, 0, pictures.size(0)).copy_(pictures);
}

std::unique_ptr<Store> make_store(const BufferConfig& config, std::int64_t slots,
                                  std::int64_t batch, int picture_size, at::Device device) {
  if (config.storage == Storage::jpeg) {
    return std::make_unique<JpegStore>(slots, picture_size, static_cast<int>(config.jpeg_quality));
  }
  return std::make_unique<RawStore>(slots, batch, picture_size, config.memory, device);
}

}  // namespace riffle
