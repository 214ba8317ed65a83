#include "riffle/eval/embedding.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>

#include <torch/torch.h>
#include <unistd.h>

#include "riffle/augment/normalize.h"
#include "riffle/base/error.h"
#include "riffle/base/log.h"
#include "riffle/base/text.h"
#include "riffle/image/resize.h"

namespace riffle {
namespace {

constexpr std::size_t kProgressEvery = 1000;  // pictures

std::uint64_t machine_memory() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page = sysconf(_SC_PAGESIZE);
  return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page);
}

std::size_t picture_bytes(int size) {
  return static_cast<std::size_t>(size) * static_cast<std::size_t>(size) * 3;
}

// The stream's next labelled sample with its picture fitted, or nothing at the end.
std::optional<Sample> next_labelled(Stream& stream, int size) {
  auto sample = stream.next();
  if (!sample) return sample;
  if (sample->label.empty()) {
    const std::string& key = sample->key;
    throw Error(cat("sample ", sample->index, key.empty() ? "" : cat(" ('", key, "')"),
                    " has no label; a probe needs a stream whose samples all have one"));
  }
  sample->picture = fit_square(std::move(sample->picture), size);
  return sample;
}

void refuse_empty(std::size_t samples) {
  if (samples == 0) throw Error("the stream of a probe gave no sample; it needs at least one");
}

std::string progress_line(const char* verb, std::int64_t done, std::int64_t total) {
  return total > 0 ? cat(verb, ' ', done, " of ", total, " pictures")
                   : cat(verb, ' ', done, " pictures");
}

at::Tensor encode_pictures(Objective& objective, const at::Tensor& pictures) {
  return objective.encode(normalize(pictures).to(device_of(objective)));
}

}  // namespace

at::Device device_of(const Objective& objective) {
  const auto parameters = objective.parameters();
  return parameters.empty() ? at::Device(at::kCPU) : parameters.front().device();
}

at::Tensor unit_length(const at::Tensor& features) {
  return features / features.norm(2, 1, /*keepdim=*/true).clamp_min(1e-12);
}

LabelledPictures collect(Stream& stream, std::int64_t max_samples, int size) {
  const std::size_t each = picture_bytes(size);
  const std::uint64_t most = machine_memory() / 2 / each;
  auto bytes = std::make_shared<std::vector<std::uint8_t>>();
  LabelledPictures collected;
  while (max_samples == 0 || std::ssize(collected.labels) < max_samples) {
    auto sample = next_labelled(stream, size);
    if (!sample) break;
    if (collected.labels.size() >= most) {
      throw Error(cat("the probe's stream goes on after ", most, " pictures of ", size,
                      " px, which fill half of the memory; give a smaller number of samples"));
    }
    bytes->insert(bytes->end(), sample->picture.rgb.begin(), sample->picture.rgb.end());
    collected.labels.push_back(std::move(sample->label));
    if (collected.labels.size() % kProgressEvery == 0) {
      show_progress(progress_line("read", std::ssize(collected.labels), max_samples));
    }
  }
  if (collected.labels.size() >= kProgressEvery) finish_progress();
  refuse_empty(collected.labels.size());
  // The tensor keeps the bytes alive instead of copying them.
  collected.pictures = torch::from_blob(
      bytes->data(), {std::ssize(collected.labels), size, size, 3}, [bytes](void*) {},
      torch::kUInt8);
  return collected;
}

LabelledFeatures embed(Objective& objective, const LabelledPictures& pictures, std::int64_t batch) {
  const std::int64_t count = pictures.pictures.size(0);
  if (count != std::ssize(pictures.labels)) {
    throw std::logic_error(cat(count, " pictures have ", pictures.labels.size(), " labels"));
  }
  at::Tensor features;
  for (std::int64_t begin = 0; begin < count; begin += batch) {
    const std::int64_t rows = std::min(batch, count - begin);
    const at::Tensor part = encode_pictures(objective, pictures.pictures.narrow(0, begin, rows));
    if (begin == 0) features = torch::empty({count, part.size(1)}, part.options());
    features.narrow(0, begin, rows).copy_(part);
  }
  return {features, pictures.labels};
}

LabelledFeatures embed(Objective& objective, Stream& stream, std::int64_t max_samples, int size,
                       std::int64_t batch) {
  const std::size_t each = picture_bytes(size);
  const at::Tensor pictures = torch::empty({batch, size, size, 3}, torch::kUInt8);
  std::vector<at::Tensor> parts;
  LabelledFeatures embedded;
  bool ended = false;
  while (!ended) {
    std::int64_t rows = 0;
    while (rows < batch && !ended) {
      const bool enough = max_samples > 0 && std::ssize(embedded.labels) >= max_samples;
      auto sample = enough ? std::nullopt : next_labelled(stream, size);
      ended = !sample;
      if (ended) break;
      std::memcpy(pictures.data_ptr<std::uint8_t>() + static_cast<std::size_t>(rows) * each,
                  sample->picture.rgb.data(), each);
      embedded.labels.push_back(std::move(sample->label));
      ++rows;
    }
    if (rows == 0) break;
    parts.push_back(encode_pictures(objective, pictures.narrow(0, 0, rows)));
    show_progress(progress_line("embedded", std::ssize(embedded.labels), max_samples));
  }
  refuse_empty(embedded.labels.size());
  finish_progress();
  embedded.features = torch::cat(parts);
  return embedded;
}

}  // namespace riffle
