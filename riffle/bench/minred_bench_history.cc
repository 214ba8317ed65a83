#include "riffle/bench/minred_bench_history.h"

#include <cmath>

#include <ATen/ATen.h>

namespace riffle {
namespace {

constexpr std::int64_t kLatent = 32;
constexpr float kFrameStep = 0.1f;   // from one frame of a clip to the next
constexpr float kViewNoise = 0.05f;  // from one draw of a sample to the next
constexpr double kTurn = 1e-3;       // of the map, per update

}  // namespace

MinredBenchHistory::MinredBenchHistory(std::int64_t slots, std::int64_t dim, at::Device device,
                                       std::uint64_t seed)
    : dim_(dim),
      device_(device),
      random_(seed, Purpose("minred bench"), 0),
      places_(slots * kLatent),
      clip_(kLatent) {
  for (at::Tensor& map : map_) {
    map = at::empty({kLatent, dim}, at::kFloat);
    float* weights = map.data_ptr<float>();
    const float scale = 1.0f / std::sqrt(static_cast<float>(kLatent));
    for (std::int64_t i = 0; i < map.numel(); ++i) weights[i] = scale * random_.normal();
    map = map.to(device);
  }
}

void MinredBenchHistory::arrive(std::span<const std::int64_t> slots, std::int64_t frames_per_clip) {
  for (const std::int64_t slot : slots) {
    const bool cut = frames_++ % frames_per_clip == 0;
    for (std::int64_t i = 0; i < kLatent; ++i) {
      clip_[i] = cut ? random_.normal() : clip_[i] + kFrameStep * random_.normal();
      places_[slot * kLatent + i] = clip_[i];
    }
  }
}

at::Tensor MinredBenchHistory::features(std::span<const std::int64_t> slots) {
  const auto count = static_cast<std::int64_t>(slots.size());
  at::Tensor places = at::empty({count, kLatent}, at::kFloat);
  float* out = places.data_ptr<float>();
  for (const std::int64_t slot : slots) {
    for (std::int64_t i = 0; i < kLatent; ++i) {
      *out++ = places_[slot * kLatent + i] + kViewNoise * random_.normal();
    }
  }
  const double angle = kTurn * static_cast<double>(updates_);
  const at::Tensor map = std::cos(angle) * map_[0] + std::sin(angle) * map_[1];
  return at::tanh(at::mm(places.to(device_), map));
}

}  // namespace riffle
