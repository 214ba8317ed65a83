#include "riffle/run/saved_buffer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include <torch/types.h>
#include <torch/utils.h>

#include "riffle/augment/normalize.h"
#include "riffle/base/log.h"
#include "riffle/base/text.h"
#include "riffle/eval/embedding.h"
#include "riffle/run/checkpoint_config.h"
#include "riffle/tensors/unit_length.h"
#include "riffle/train/learner_state.h"

namespace riffle {
namespace {

constexpr std::int64_t kPicturesAtOnce = 256;

std::string newest_checkpoint(const RunFolder& folder) {
  const auto names = folder.checkpoint_names();
  if (names.empty()) throw Error(cat(folder.path().string(), " has no checkpoint yet"));
  return names.back();
}

Picture picture_of(const at::Tensor& pixels) {
  Picture picture(static_cast<int>(pixels.size(1)), static_cast<int>(pixels.size(0)));
  std::memcpy(picture.rgb.data(), pixels.const_data_ptr(), picture.rgb.size());
  return picture;
}

std::unique_ptr<Store> host_store(const Config& config) {
  BufferConfig in_memory = config.learner.buffer;
  in_memory.memory = BufferMemory::host;
  return make_store(in_memory, kPicturesAtOnce, static_cast<int>(config.learner.stored_size()),
                    at::kCPU);
}

// Of what is kept of one sample: its picture first, then any partner's.
std::int64_t stored_bytes(const Config& config, const Store& store) {
  return config.learner.buffer_config().pictures_a_sample() * store.stored_bytes();
}

// Returns the samples' own pictures. Requires at most kPicturesAtOnce.
std::vector<Picture> decoded(Store& store, const at::Tensor& stored) {
  std::vector<std::int64_t> slots(static_cast<std::size_t>(stored.size(0)));
  std::iota(slots.begin(), slots.end(), 0);
  store.write(slots, stored.narrow(1, 0, store.stored_bytes()));
  const Pictures got = store.get(slots);
  std::vector<Picture> pictures;
  for (const auto row : got.indices) pictures.push_back(picture_of(got.tensor[row]));
  return pictures;
}

}  // namespace

SavedBuffer::SavedBuffer(const RunFolder& folder, const std::string& name)
    : folder_(folder),
      config_(folder.config()),
      checkpoint_(name.empty() ? newest_checkpoint(folder)
                               : folder.find_checkpoint(name).stem().string()) {
  const Checkpoint checkpoint = read_checkpoint(folder, checkpoint_);
  require_same_network(config_, checkpoint.config, folder.state_file(checkpoint_));
  samples_seen_ = checkpoint.samples_seen;
  BufferState state = saved_buffer_state(checkpoint.state);
  for (std::size_t i = 0; i < state.live.size(); ++i) {
    samples_.push_back({std::move(state.samples[i]), state.live[i], checkpoint.places[i]});
  }
  std::ranges::sort(samples_, {}, [](const KeptSample& sample) { return sample.info.arrival; });

  const SavedPolicy policy = state.saved_policy();
  if (!policy.weights.empty()) {
    for (auto& sample : samples_) {
      sample.weight = policy.weights[static_cast<std::size_t>(sample.slot)];
    }
  }
  if (policy.features.defined()) {
    features_ = policy.features.masked_fill(policy.has_feature.logical_not().unsqueeze(1), 0);
  }
  store_ = host_store(config_);
  log_ = std::make_unique<PictureLog>(folder.checkpoints(), state.shape.slots(),
                                      stored_bytes(config_, *store_));
}

std::vector<Picture> SavedBuffer::pictures(std::span<const std::size_t> which) {
  std::vector<Picture> result;
  while (!which.empty()) {
    const auto part = which.first(std::min<std::size_t>(which.size(), kPicturesAtOnce));
    which = which.subspan(part.size());
    std::vector<Slot> slots;
    std::vector<std::uint64_t> arrivals;
    std::vector<PicturePlace> places;
    for (const std::size_t i : part) {
      const KeptSample& sample = samples_.at(i);
      slots.push_back(sample.slot);
      arrivals.push_back(sample.info.arrival);
      places.push_back(sample.place);
    }
    for (auto& picture : decoded(*store_, log_->adopt(slots, arrivals, places))) {
      result.push_back(std::move(picture));
    }
  }
  return result;
}

at::Tensor SavedBuffer::encoded(std::span<const std::size_t> which, at::Device device) {
  const auto objective = load_objective(config_, folder_.state_file(checkpoint_));
  objective->to(device);
  std::vector<at::Tensor> parts;
  for (std::size_t begin = 0; begin < which.size(); begin += kPicturesAtOnce) {
    const auto some =
        which.subspan(begin, std::min<std::size_t>(kPicturesAtOnce, which.size() - begin));
    std::vector<at::Tensor> batch;
    for (const Picture& picture : pictures(some)) {
      batch.push_back(torch::tensor(picture.rgb).reshape({picture.height, picture.width, 3}));
    }
    parts.push_back(objective->encode(normalize(torch::stack(batch)).to(device)));
    show_progress(cat("encoded ", begin + some.size(), " of ", which.size(), " pictures"));
  }
  finish_progress();
  return torch::cat(parts);
}

at::Tensor SavedBuffer::features() const {
  if (!features_.defined()) return {};
  std::vector<std::int64_t> slots;
  for (const auto& sample : samples_) slots.push_back(sample.slot);
  return features_.index_select(0, integers_tensor(slots));
}

void SavedBuffer::measure_nearest(at::Device device) {
  if (samples_.size() < 2) return;
  std::vector<std::size_t> all(samples_.size());
  std::iota(all.begin(), all.end(), 0u);
  const auto distances =
      nearest_distances(features_.defined() ? features().to(device) : encoded(all, device));
  for (std::size_t i = 0; i < samples_.size(); ++i) samples_[i].nearest = distances[i];
}

std::vector<ArrivedPicture> newest_arrivals(const RunFolder& folder, std::size_t count) {
  count = std::min<std::size_t>(count, kPicturesAtOnce);
  const Config config = folder.config();
  const auto store = host_store(config);
  PictureLog log(folder.checkpoints(), kPicturesAtOnce, stored_bytes(config, *store));
  std::vector<Slot> slots;
  std::vector<std::uint64_t> arrivals;
  std::vector<PicturePlace> places;
  for (const auto& [arrival, place] : log.newest_arrivals(count)) {
    slots.push_back(std::ssize(slots));
    arrivals.push_back(arrival);
    places.push_back(place);
  }
  if (slots.empty()) return {};
  // One that is being written is not whole yet.
  std::vector<std::size_t> not_whole;
  const at::Tensor stored = log.adopt(slots, arrivals, places, &not_whole);
  std::vector<std::int64_t> rows;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (std::ranges::find(not_whole, i) == not_whole.end()) rows.push_back(slots[i]);
  }
  auto pictures = decoded(*store, stored.index_select(0, integers_tensor(rows)));
  std::vector<ArrivedPicture> newest;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    newest.push_back({arrivals[static_cast<std::size_t>(rows[i])], std::move(pictures[i])});
  }
  return newest;
}

std::vector<double> nearest_distances(const at::Tensor& rows) {
  constexpr std::int64_t kRowsAtOnce = 1024;
  const torch::NoGradGuard no_gradient;
  const at::Tensor values = rows.to(torch::kFloat32);
  const at::Tensor absent = values.norm(2, 1) == 0;
  const at::Tensor units = unit_length(values);
  const std::int64_t count = units.size(0);
  std::vector<at::Tensor> parts;
  for (std::int64_t begin = 0; begin < count; begin += kRowsAtOnce) {
    const std::int64_t here = std::min(kRowsAtOnce, count - begin);
    at::Tensor cosines = units.narrow(0, begin, here).matmul(units.t());
    cosines.masked_fill_(absent.unsqueeze(0), -INFINITY);
    cosines.narrow(1, begin, here).fill_diagonal_(-INFINITY);
    const at::Tensor largest = std::get<0>(cosines.max(1));
    parts.push_back((1 - largest)
                        .clamp_min(0)
                        .masked_fill(absent.narrow(0, begin, here) | largest.isinf(), NAN));
    if (count > kRowsAtOnce) {
      show_progress(cat("compared ", begin + here, " of ", count, " samples with all others"));
    }
  }
  if (count > kRowsAtOnce) finish_progress();
  const at::Tensor all = torch::cat(parts).to(torch::kCPU, torch::kFloat64).contiguous();
  return {all.const_data_ptr<double>(), all.const_data_ptr<double>() + count};
}

}  // namespace riffle
