#include "riffle/augment/two_views_gpu.h"

#include <array>
#include <stdexcept>

#include <ATen/ATen.h>
#include <c10/cuda/CUDAStream.h>

#include "riffle/augment/render_cuda.h"
#include "riffle/augment/view_plan.h"
#include "riffle/tensors/check_cuda.h"

namespace riffle {
namespace {

constexpr std::uint64_t kNoStep = ~std::uint64_t{0};

// Plans in host memory that the device copies from.
struct PlanBuffer {
  std::uint64_t step = kNoStep;
  at::Tensor bytes;

  ViewPlan* plans() { return reinterpret_cast<ViewPlan*>(bytes.mutable_data_ptr<std::uint8_t>()); }
};

}  // namespace

struct TwoViewsGpu::State {
  AugmentConfig config;
  std::uint64_t seed;
  ThreadPool* pool;
  std::int64_t batch;
  BatchPlaces places;
  int picture_size;
  ViewLayout layout;
  at::Tensor views;
  // On the device.
  at::Tensor plans;
  // Used in turn: two may still be waiting to be copied.
  std::array<PlanBuffer, 3> buffers;
  std::size_t next = 0;
};

TwoViewsGpu::TwoViewsGpu(const AugmentConfig& config, std::uint64_t seed, ThreadPool& pool,
                         std::int64_t batch, std::int64_t picture_size, ViewLayout layout,
                         at::ScalarType type, const BatchPlaces& places)
    : state_(std::make_unique<State>()) {
  config.validate();
  if (layout != ViewLayout::plain && type != at::kBFloat16) {
    throw std::logic_error("only bfloat16 views have a layout of their own");
  }
  State& s = *state_;
  s.config = config;
  s.seed = seed;
  s.pool = &pool;
  s.batch = batch;
  s.places = places;
  s.picture_size = static_cast<int>(picture_size);
  s.layout = layout;
  s.views = at::zeros(view_shape(layout, kViews * batch, config.size),
                      at::TensorOptions().device(at::kCUDA).dtype(type))
                .contiguous(at::MemoryFormat::ChannelsLast);
  const std::int64_t bytes = kViews * batch * static_cast<std::int64_t>(sizeof(ViewPlan));
  s.plans = at::empty({bytes}, at::TensorOptions().device(at::kCUDA).dtype(at::kByte));
  for (PlanBuffer& buffer : s.buffers) {
    buffer.bytes = at::empty({bytes}, at::TensorOptions().dtype(at::kByte).pinned_memory(true));
  }
}

TwoViewsGpu::~TwoViewsGpu() = default;

bool TwoViewsGpu::fits(std::int64_t size, std::int64_t picture_size) {
  const auto side = static_cast<int>(picture_size);
  return render_cuda::fits(static_cast<int>(size), side, side);
}

void TwoViewsGpu::plan(std::uint64_t step) {
  State& s = *state_;
  PlanBuffer& buffer = s.buffers[s.next];
  if (buffer.step == step) return;
  ViewPlan* plans = buffer.plans();
  constexpr std::int64_t kPlansATask = 64;
  const std::int64_t count = kViews * s.batch;
  s.pool->for_each((count + kPlansATask - 1) / kPlansATask, [&](std::int64_t task) {
    for (std::int64_t i = task * kPlansATask; i < std::min(count, (task + 1) * kPlansATask); ++i) {
      const std::int64_t place = s.places.of(i % s.batch);
      plans[i] = plan_view(s.config, s.picture_size, s.picture_size, s.seed,
                           view_position(step, place, static_cast<int>(i / s.batch)));
    }
  });
  buffer.step = step;
}

void TwoViewsGpu::upload(std::uint64_t step) {
  State& s = *state_;
  plan(step);
  s.plans.copy_(s.buffers[s.next].bytes, /*non_blocking=*/true);
  s.next = (s.next + 1) % s.buffers.size();
}

at::Tensor TwoViewsGpu::render(const at::Tensor& pictures, std::int64_t views) {
  State& s = *state_;
  const std::int64_t count = pictures.size(0);
  if (!pictures.is_cuda() || !pictures.is_contiguous() || pictures.scalar_type() != at::kByte ||
      (count != s.batch && count != kViews * s.batch) ||
      pictures.sizes() != at::IntArrayRef({count, s.picture_size, s.picture_size, 3})) {
    throw std::invalid_argument("pictures must be a whole batch of bytes on the GPU, or two");
  }
  const render_cuda::Job job{
      .pictures = pictures.const_data_ptr<std::uint8_t>(),
      .count = static_cast<int>(count),
      .height = s.picture_size,
      .width = s.picture_size,
      .plans = reinterpret_cast<const ViewPlan*>(s.plans.const_data_ptr<std::uint8_t>()),
      .views = static_cast<int>(views * s.batch),
      .size = static_cast<int>(s.config.size),
      .layout = s.layout,
      .number = s.views.scalar_type() == at::kFloat ? Number::float32 : Number::bfloat16,
      .out = s.views.mutable_data_ptr()};
  check_cuda(render_cuda::render(job, c10::cuda::getCurrentCUDAStream().stream()), "making views");
  return s.views.narrow(0, 0, views * s.batch);
}

}  // namespace riffle
