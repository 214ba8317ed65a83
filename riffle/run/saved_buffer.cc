#include "riffle/run/saved_buffer.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <torch/types.h>
#include <torch/utils.h>

#include "riffle/augment/normalize.h"
#include "riffle/base/log.h"
#include "riffle/base/text.h"
#include "riffle/eval/embedding.h"
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

}  // namespace

SavedBuffer::SavedBuffer(const RunFolder& folder, const std::string& name)
    : folder_(folder),
      config_(folder.config()),
      checkpoint_(name.empty() ? newest_checkpoint(folder)
                               : folder.find_checkpoint(name).stem().string()) {
  const Checkpoint checkpoint = read_checkpoint(folder, checkpoint_);
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
  BufferConfig in_memory = config_.learner.buffer;
  in_memory.memory = BufferMemory::host;
  store_ = make_store(in_memory, kPicturesAtOnce, static_cast<int>(config_.learner.stored_size()),
                      at::kCPU);
  log_ = std::make_unique<PictureLog>(folder.checkpoints(), state.shape.slots(),
                                      store_->stored_bytes());
}

std::vector<Picture> SavedBuffer::pictures(std::span<const std::size_t> which) {
  std::vector<Picture> result;
  while (!which.empty()) {
    const auto part = which.first(std::min<std::size_t>(which.size(), kPicturesAtOnce));
    which = which.subspan(part.size());
    std::vector<Slot> slots, places_in_store;
    std::vector<std::uint64_t> arrivals;
    std::vector<PicturePlace> places;
    for (const std::size_t i : part) {
      const KeptSample& sample = samples_.at(i);
      slots.push_back(sample.slot);
      arrivals.push_back(sample.info.arrival);
      places.push_back(sample.place);
      places_in_store.push_back(std::ssize(places_in_store));
    }
    store_->write(places_in_store, log_->adopt(slots, arrivals, places));
    const Pictures got = store_->get(places_in_store);
    for (const auto row : got.indices) result.push_back(picture_of(got.tensor[row]));
  }
  return result;
}

at::Tensor SavedBuffer::encoded(at::Device device) {
  const auto objective = load_objective(config_, folder_.state_file(checkpoint_));
  objective->to(device);
  std::vector<at::Tensor> parts;
  for (std::size_t begin = 0; begin < samples_.size(); begin += kPicturesAtOnce) {
    std::vector<std::size_t> which;
    for (std::size_t i = begin; i < std::min(begin + kPicturesAtOnce, samples_.size()); ++i) {
      which.push_back(i);
    }
    std::vector<at::Tensor> batch;
    for (const Picture& picture : pictures(which)) {
      batch.push_back(torch::tensor(picture.rgb).reshape({picture.height, picture.width, 3}));
    }
    parts.push_back(objective->encode(normalize(torch::stack(batch)).to(device)));
    show_progress(cat("encoded ", begin + which.size(), " of ", samples_.size(), " pictures"));
  }
  finish_progress();
  return torch::cat(parts);
}

void SavedBuffer::measure_nearest(at::Device device) {
  if (samples_.size() < 2) return;
  at::Tensor rows;
  if (features_.defined()) {
    std::vector<std::int64_t> slots;
    for (const auto& sample : samples_) slots.push_back(sample.slot);
    rows = features_.index_select(0, integers_tensor(slots)).to(device);
  } else {
    rows = encoded(device);
  }
  const auto distances = nearest_distances(rows);
  for (std::size_t i = 0; i < samples_.size(); ++i) samples_[i].nearest = distances[i];
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
