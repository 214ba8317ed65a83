#include "riffle/eval/labelled_set.h"

#include <algorithm>
#include <utility>

#include <torch/types.h>

#include "riffle/base/error.h"
#include "riffle/base/text.h"

namespace riffle {
namespace {

// Of a reading that is only for the labels.
constexpr std::int64_t kReadBatch = 256;

}  // namespace

LabelledSet::LabelledSet(Open open, std::int64_t max_samples, EncoderInput input,
                         std::uint64_t most_held_bytes, Ranks& ranks)
    : open_(std::move(open)),
      max_samples_(max_samples),
      input_(input),
      most_held_bytes_(most_held_bytes),
      ranks_(ranks) {}

LabelledSet::LabelledSet(LabelledPictures pictures, EncoderInput input)
    : max_samples_(0),
      input_(input),
      most_held_bytes_(0),
      ranks_(one_rank()),
      labels_(std::move(pictures.labels)),
      known_(true),
      held_(std::move(pictures.pictures)) {}

const std::vector<std::string>& LabelledSet::labels() {
  if (!known_) for_each(kReadBatch, [](const at::Tensor&) {});
  return labels_;
}

void LabelledSet::for_each(std::int64_t batch, const Use& use) {
  if (!held_.defined()) return read(batch, use);
  for (std::int64_t begin = 0; begin < held_.size(0); begin += batch) {
    use(held_.narrow(0, begin, std::min(batch, held_.size(0) - begin)));
  }
}

void LabelledSet::read(std::int64_t batch, const Use& use) {
  std::vector<at::Tensor> parts;
  std::vector<std::string> labels;
  std::uint64_t bytes = 0;
  const auto stream = open_();
  const auto take = [&](const PictureBatch& read) {
    for (const Sample& sample : read.samples) {
      require_label(sample);
      labels.push_back(sample.label);
    }
    bytes += static_cast<std::uint64_t>(read.pictures.nbytes());
    if (bytes <= most_held_bytes_) {
      parts.push_back(read.pictures);
    } else {
      parts.clear();
    }
    use(read.pictures);
  };
  read_batches(*stream, max_samples_, input_.resize, batch, take, ranks_);
  if (labels.empty()) {
    throw Error("the stream of a probe has no samples; it needs at least one");
  }
  if (known_ && labels != labels_) {
    throw Error(cat("a probe's stream gave ", labels_.size(), " labelled pictures at first, then ",
                    labels.size(), ", or others; it must stay as it is while it is read"));
  }
  labels_ = std::move(labels);
  known_ = true;
  if (bytes <= most_held_bytes_) held_ = torch::cat(parts);
}

at::Tensor LabelledSet::encode(Encoder& encoder, std::int64_t batch, const Encode& encode) {
  const at::Device device = device_of(encoder);
  std::vector<at::Tensor> parts;
  at::Tensor own;
  std::int64_t index = 0;
  const auto gather = [&] {
    parts.push_back(ranks_.gather_rows(std::exchange(own, at::Tensor())).to(device));
  };
  for_each(batch, [&](const at::Tensor& pictures) {
    if (index % ranks_.size() == ranks_.rank()) own = encode(pictures, index);
    if (++index % ranks_.size() == 0) gather();
  });
  if (index % ranks_.size() != 0) gather();
  return torch::cat(parts);
}

LabelledFeatures embed(Encoder& encoder, LabelledSet& set) {
  const auto batch = suitable_batch(device_of(encoder), set.input().crop);
  const at::Tensor features =
      set.encode(encoder, batch, [&](const at::Tensor& pictures, std::int64_t) {
        return encode_pictures(encoder, pictures, set.input().crop);
      });
  return {features, set.labels()};
}

}  // namespace riffle
