#include "riffle/watch/sheets.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <vector>

#include <torch/types.h>
#include <torch/utils.h>

#include "riffle/base/text.h"
#include "riffle/image/codec.h"
#include "riffle/image/resize.h"
#include "riffle/pages/buffer_page.h"
#include "riffle/pages/feature_map.h"
#include "riffle/report/markup.h"
#include "riffle/run/saved_buffer.h"
#include "riffle/tensors/unit_length.h"

namespace riffle {
namespace {

using Json = nlohmann::json;
using Places = std::vector<std::size_t>;

constexpr int kThumbnail = 72;
constexpr int kQuality = 85;
// Samples compared with one another: the cost grows with the square.
constexpr std::size_t kCompared = 4096;

std::string thumbnail(Picture picture) {
  const int size = std::min({kThumbnail, picture.width, picture.height});
  return "data:image/jpeg;base64," +
         base64(encode_jpeg(fit_square(std::move(picture), size), kQuality));
}

std::string sample_text(const KeptSample& sample) {
  const auto& info = sample.info;
  std::string text = cat("sample ", info.arrival);
  if (!info.label.empty()) text += cat(", ", info.label);
  if (info.clip != kNoClip) text += cat(", clip ", info.clip);
  text += cat(", drawn ", info.draws, info.draws == 1 ? " time" : " times");
  if (sample.weight != 1) text += cat(", weight ", fixed(sample.weight, 1));
  if (std::isfinite(sample.nearest)) text += cat(", nearest at ", fixed(sample.nearest, 3));
  return text;
}

Json sheet_of(SavedBuffer& buffer, const std::string& title, const std::string& caption,
              const Places& which) {
  Json pictures = Json::array();
  auto shown = buffer.pictures(which);
  for (std::size_t i = 0; i < which.size(); ++i) {
    pictures.push_back({{"src", thumbnail(std::move(shown[i]))},
                        {"text", sample_text(buffer.samples()[which[i]])}});
  }
  return {{"title", title}, {"caption", caption}, {"pictures", std::move(pictures)}};
}

at::Tensor rows_of(const at::Tensor& features, const Places& which) {
  const std::vector<std::int64_t> rows(which.begin(), which.end());
  return features.index_select(0, integers_tensor(rows)).to(torch::kFloat32);
}

void add_redundancy(SavedBuffer& buffer, std::size_t count, Json& sheets) {
  const at::Tensor features = buffer.features();
  if (!features.defined()) return;
  const Places looked_at = spaced(buffer.samples().size(), kCompared);
  const auto distances = nearest_distances(rows_of(features, looked_at));
  Places order;
  for (std::size_t i = 0; i < distances.size(); ++i) {
    if (std::isfinite(distances[i])) order.push_back(i);
  }
  if (order.empty()) return;
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return distances[i]; });
  count = std::min(count, order.size());
  const std::string of = cat("Of ", order.size(), " compared. ");
  const auto add = [&](const char* title, const std::string& caption, auto begin) {
    Places which;
    for (std::size_t i = 0; i < count; ++i, ++begin) which.push_back(looked_at[*begin]);
    sheets.push_back(sheet_of(buffer, title, of + caption, which));
  };
  add("The most redundant", "Their features are nearest to another's.", order.begin());
  add("The least redundant", "Their features are farthest from any other.", order.rbegin());
}

// For each row of `of`, the row of `among` with the largest cosine; and one minus that. A row of
// zeros is no feature: nothing is like it, at 2.
std::pair<Places, std::vector<double>> most_alike(const at::Tensor& of, const at::Tensor& among) {
  const torch::NoGradGuard no_gradient;
  at::Tensor cosines = unit_length(of).matmul(unit_length(among).t());
  cosines.masked_fill_((of.norm(2, 1) == 0).unsqueeze(1), -1);
  cosines.masked_fill_((among.norm(2, 1) == 0).unsqueeze(0), -1);
  const auto [cosine, place] = cosines.max(1);
  std::pair<Places, std::vector<double>> found;
  for (std::int64_t i = 0; i < of.size(0); ++i) {
    found.first.push_back(static_cast<std::size_t>(place[i].item<std::int64_t>()));
    found.second.push_back(1 - cosine[i].item<double>());
  }
  return found;
}

void add_left(const RunFolder& folder, const SavedBuffer& now, std::size_t count, Json& sheets) {
  const auto names = folder.checkpoint_names();
  const auto newest = std::ranges::find(names, now.checkpoint());
  if (newest == names.begin() || newest == names.end()) return;
  SavedBuffer before(folder, *(newest - 1));
  std::set<std::uint64_t> still_there;
  for (const auto& sample : now.samples()) still_there.insert(sample.info.arrival);
  Places left, stayed;
  for (std::size_t i = 0; i < before.samples().size(); ++i) {
    (still_there.contains(before.samples()[i].info.arrival) ? stayed : left).push_back(i);
  }
  if (left.empty()) return;
  const std::size_t total = left.size();
  Places shown;
  for (const std::size_t i : spaced(total, count)) shown.push_back(left[i]);
  Json sheet = sheet_of(
      before, "What just left",
      cat(total, " samples left between ", before.checkpoint(), " and ", now.checkpoint(), "."),
      shown);
  const at::Tensor features = before.features();
  if (features.defined() && !stayed.empty()) {
    const auto [places, distances] =
        most_alike(rows_of(features, shown), rows_of(features, stayed));
    Places alike;
    for (const std::size_t place : places) alike.push_back(stayed[place]);
    auto pictures = before.pictures(alike);
    for (std::size_t i = 0; i < shown.size(); ++i) {
      if (!(distances[i] < 2)) continue;
      sheet["pictures"][i]["beside"] = {
          {"src", thumbnail(std::move(pictures[i]))},
          {"text", cat("stayed, at distance ", fixed(distances[i], 3), ": ",
                       sample_text(before.samples()[alike[i]]))}};
    }
    sheet["caption"] = cat(sheet["caption"].get<std::string>(),
                           " To the right of each: the one most like it that stayed.");
  }
  sheets.push_back(std::move(sheet));
}

// Samples with their places on a map of features; empty where the policy keeps none.
Json map_of(SavedBuffer& buffer) {
  constexpr std::size_t kOnMap = 120;
  Json points = Json::array();
  const at::Tensor features = buffer.features();
  if (!features.defined()) return points;
  const auto mapped = feature_map(features, kOnMap);
  Places which;
  for (const auto& point : mapped) which.push_back(point.sample);
  auto pictures = buffer.pictures(which);
  for (std::size_t i = 0; i < mapped.size(); ++i) {
    points.push_back({{"x", mapped[i].x},
                      {"y", mapped[i].y},
                      {"src", thumbnail(std::move(pictures[i]))},
                      {"text", sample_text(buffer.samples()[which[i]])}});
  }
  return points;
}

void add_neighbours(SavedBuffer& buffer, Json& sheets) {
  constexpr std::size_t kQueries = 6, kEach = 5;
  const at::Tensor features = buffer.features();
  if (!features.defined()) return;
  Json pictures = Json::array();
  for (const auto& [sample, nearest] : nearest_neighbours(features, kQueries, kEach)) {
    Places which = {sample};
    which.insert(which.end(), nearest.begin(), nearest.end());
    Json row = sheet_of(buffer, "", "", which)["pictures"];
    pictures.push_back(std::move(row[0]));
    row.erase(0);
    pictures.back()["row"] = std::move(row);
  }
  if (pictures.empty()) return;
  sheets.push_back({{"title", "Neighbours"},
                    {"caption", "Samples, each with those that the network finds most like it."},
                    {"pictures", std::move(pictures)}});
}

}  // namespace

Json arrived_sheet(const RunFolder& folder, std::size_t count) {
  Json pictures = Json::array();
  for (auto& [arrival, picture] : newest_arrivals(folder, count)) {
    pictures.push_back({{"src", thumbnail(std::move(picture))}, {"text", cat("sample ", arrival)}});
  }
  return {{"title", "What just arrived"},
          {"caption", "The newest samples that entered the buffer, newest first."},
          {"pictures", std::move(pictures)}};
}

Json kept_sheets(const RunFolder& folder, std::size_t count) {
  SavedBuffer buffer(folder);
  Json sheets = Json::array();
  if (!buffer.samples().empty()) {
    add_left(folder, buffer, count, sheets);
    add_redundancy(buffer, count, sheets);
    sheets.push_back(sheet_of(buffer, "What is kept",
                              cat("Some of ", buffer.samples().size(), " samples, oldest first."),
                              spaced(buffer.samples().size(), count)));
    add_neighbours(buffer, sheets);
  }
  return {
      {"checkpoint", buffer.checkpoint()}, {"sheets", std::move(sheets)}, {"map", map_of(buffer)}};
}

}  // namespace riffle
