#include "riffle/pages/feature_map.h"

#include <algorithm>

#include <torch/types.h>
#include <torch/utils.h>

#include "riffle/base/text.h"
#include "riffle/image/codec.h"
#include "riffle/image/resize.h"
#include "riffle/report/markup.h"
#include "riffle/tensors/unit_length.h"

namespace riffle {
namespace {

// Rows that the components are computed from, and that neighbours are looked for among.
constexpr std::int64_t kMostRows = 4096;

// The rows that have a feature, at most kMostRows of them, evenly spaced.
std::vector<std::int64_t> mapped_rows(const at::Tensor& features) {
  const at::Tensor present = (features.to(torch::kFloat32).norm(2, 1) > 0).nonzero().flatten();
  const std::int64_t size = present.size(0);
  const std::int64_t count = std::min(size, kMostRows);
  std::vector<std::int64_t> rows;
  for (std::int64_t i = 0; i < count; ++i) {
    rows.push_back(present[i * size / count].item<std::int64_t>());
  }
  return rows;
}

at::Tensor unit_rows(const at::Tensor& features, const std::vector<std::int64_t>& rows) {
  return unit_length(features.index_select(0, integers_tensor(rows)).to(torch::kFloat32));
}

// The two directions of the largest variance, [dim, 2].
at::Tensor principal_directions(const at::Tensor& centred) {
  constexpr int kRounds = 60;
  at::Tensor directions = torch::stack({centred[0], centred[centred.size(0) / 2]}, 1);
  directions = directions + 1e-3 * torch::eye(centred.size(1), 2);
  for (int i = 0; i < kRounds; ++i) {
    directions = std::get<0>(at::linalg_qr(centred.t().matmul(centred.matmul(directions))));
  }
  return directions;
}

}  // namespace

std::vector<MapPoint> feature_map(const at::Tensor& features, std::size_t count) {
  const torch::NoGradGuard no_gradient;
  const auto rows = mapped_rows(features);
  if (rows.size() < 3 || features.size(1) < 2) return {};
  const at::Tensor units = unit_rows(features, rows);
  const at::Tensor centred = units - units.mean(0, /*keepdim=*/true);
  const at::Tensor places = centred.matmul(principal_directions(centred));
  const at::Tensor low = std::get<0>(places.min(0)), high = std::get<0>(places.max(0));
  const at::Tensor scaled = (places - low) / (high - low).clamp_min(1e-12);
  count = std::min(count, rows.size());
  std::vector<MapPoint> points;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t row = i * rows.size() / count;
    const at::Tensor at = scaled[static_cast<std::int64_t>(row)];
    points.push_back(
        {static_cast<std::size_t>(rows[row]), at[0].item<double>(), at[1].item<double>()});
  }
  return points;
}

std::vector<Neighbours> nearest_neighbours(const at::Tensor& features, std::size_t count,
                                           std::size_t each) {
  const torch::NoGradGuard no_gradient;
  const auto rows = mapped_rows(features);
  each = std::min(each, rows.empty() ? 0 : rows.size() - 1);
  if (each == 0) return {};
  const at::Tensor units = unit_rows(features, rows);
  count = std::min(count, rows.size());
  std::vector<Neighbours> found;
  for (std::size_t i = 0; i < count; ++i) {
    const auto row = static_cast<std::int64_t>(i * rows.size() / count);
    at::Tensor cosines = units.matmul(units[row]);
    cosines[row] = -2;
    const at::Tensor nearest = std::get<1>(cosines.topk(static_cast<std::int64_t>(each)));
    Neighbours neighbours{static_cast<std::size_t>(rows[static_cast<std::size_t>(row)]), {}};
    for (std::int64_t k = 0; k < nearest.size(0); ++k) {
      const auto place = static_cast<std::size_t>(nearest[k].item<std::int64_t>());
      neighbours.nearest.push_back(static_cast<std::size_t>(rows[place]));
    }
    found.push_back(std::move(neighbours));
  }
  return found;
}

std::string map_svg(SavedBuffer& buffer, const at::Tensor& features,
                    const std::vector<std::size_t>& samples, std::size_t count) {
  constexpr int kWidth = 760, kHeight = 460, kSide = 32, kQuality = 85;
  const auto points = feature_map(features, count);
  if (points.empty()) return "";
  std::vector<std::size_t> which;
  for (const auto& point : points) which.push_back(samples[point.sample]);
  auto pictures = buffer.pictures(which);
  std::string svg = cat("<svg class=\"chart\" viewBox=\"0 0 ", kWidth, ' ', kHeight,
                        "\" role=\"img\" aria-label=\"A map of the buffer's features\">\n");
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto jpeg = encode_jpeg(fit_square(std::move(pictures[i]), kSide), kQuality);
    svg += cat("<image x=\"", fixed(points[i].x * (kWidth - kSide), 1), "\" y=\"",
               fixed(points[i].y * (kHeight - kSide), 1), "\" width=\"", kSide, "\" height=\"",
               kSide, "\" href=\"data:image/jpeg;base64,", base64(jpeg), "\"><title>",
               escape(buffer.samples()[which[i]].info.label), "</title></image>\n");
  }
  return svg + "</svg>\n";
}

}  // namespace riffle
