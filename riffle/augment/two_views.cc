#include "riffle/augment/two_views.h"

#include <stdexcept>

#include <ATen/ops/empty.h>

#include "riffle/augment/view.h"
#include "riffle/augment/view_plan.h"
#include "riffle/base/text.h"

namespace riffle {

TwoViews::TwoViews(const AugmentConfig& config, std::uint64_t seed, ThreadPool& pool)
    : config_(config), seed_(seed), pool_(&pool) {
  config_.validate();
}

at::Tensor TwoViews::operator()(const at::Tensor& pictures, std::span<const std::int64_t> slots,
                                std::uint64_t step, std::span<const std::int64_t> second,
                                const BatchPlaces& places) const {
  if (!second.empty() && second.size() != slots.size()) {
    throw std::invalid_argument(cat(second.size(), " second pictures for ", slots.size()));
  }
  return make(pictures, slots, second.empty() ? slots : second, step, places, kViews);
}

at::Tensor TwoViews::one_view(const at::Tensor& pictures, std::span<const std::int64_t> slots,
                              std::uint64_t step) const {
  return make(pictures, slots, slots, step, /*places=*/{}, 1);
}

at::Tensor TwoViews::make(const at::Tensor& pictures, std::span<const std::int64_t> slots,
                          std::span<const std::int64_t> second, std::uint64_t step,
                          const BatchPlaces& places, std::int64_t views) const {
  check_pictures(pictures);
  for (const auto of_view : {slots, second}) {
    for (const auto slot : of_view) {
      if (slot < 0 || slot >= pictures.size(0)) {
        throw std::out_of_range(cat("no slot ", slot, " among ", pictures.size(0), " pictures"));
      }
    }
  }
  const auto count = static_cast<std::int64_t>(slots.size());
  auto result = at::empty({views * count, 3, config_.size, config_.size},
                          pictures.options().dtype(at::kFloat), at::MemoryFormat::ChannelsLast);
  auto* out = result.mutable_data_ptr<float>();

  const auto height = static_cast<int>(pictures.size(1));
  const auto width = static_cast<int>(pictures.size(2));
  const std::int64_t picture_bytes = pictures.size(1) * pictures.size(2) * 3;
  const std::int64_t view_floats = config_.size * config_.size * 3;
  const auto* bytes = pictures.const_data_ptr<std::uint8_t>();
  pool_->for_each(count * views, [&](std::int64_t turn) {
    const std::int64_t place = turn / views;
    const auto view = static_cast<int>(turn % views);
    const ViewPlan plan =
        plan_view(config_, height, width, seed_, view_position(step, places.of(place), view));
    const std::int64_t slot = (view == 0 ? slots : second)[static_cast<std::size_t>(place)];
    render_view(bytes + slot * picture_bytes, width, plan, static_cast<int>(config_.size),
                out + (view * count + place) * view_floats);
  });
  return result;
}

}  // namespace riffle
