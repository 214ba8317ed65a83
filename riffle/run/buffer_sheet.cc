#include "riffle/run/buffer_sheet.h"

#include <algorithm>
#include <cstring>

#include <ATen/ATen.h>

#include "riffle/image/contact_sheet.h"

namespace riffle {

Picture buffer_sheet(const ReplayBuffer& buffer) {
  constexpr std::size_t kShown = 64;
  constexpr int kColumns = 8, kMostCell = 64;
  auto slots = buffer.live();
  std::ranges::sort(slots, {}, [&](Slot slot) { return buffer.info(slot).arrival; });
  std::vector<Slot> shown;
  const std::size_t count = std::min(kShown, slots.size());
  for (std::size_t i = 0; i < count; ++i) shown.push_back(slots[i * slots.size() / count]);
  const Pictures found = buffer.pictures(shown);
  const at::Tensor where = integers_tensor(found.indices).to(found.tensor.device());
  const at::Tensor rows = found.tensor.index_select(0, where).cpu();
  const int size = buffer.picture_size();
  std::vector<Picture> pictures(count, Picture(size, size));
  for (std::size_t i = 0; i < count; ++i) {
    auto& rgb = pictures[i].rgb;
    std::memcpy(rgb.data(), rows.const_data_ptr<std::uint8_t>() + i * rgb.size(), rgb.size());
  }
  return contact_sheet(pictures, kColumns, std::min(size, kMostCell));
}

}  // namespace riffle
