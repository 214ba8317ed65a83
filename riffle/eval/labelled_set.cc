#include "riffle/eval/labelled_set.h"

#include <algorithm>
#include <utility>

#include <torch/types.h>

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/eval/picture_rounds.h"

namespace riffle {
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
      held_(pictures.pictures.split(kBatch)) {}

const std::vector<std::string>& LabelledSet::labels() {
  if (!known_) for_each_round([](const at::Tensor&) {});
  return labels_;
}

void LabelledSet::for_each_round(const UseRound& use) {
  if (held_.empty()) return read(use);
  for (const at::Tensor& own : held_) use(own);
}

void LabelledSet::read(const UseRound& use) {
  struct Reading : RoundUser {
    Reading(const LabelledSet& reader, const UseRound& user) : set(reader), use(user) {}

    void take(std::vector<OwnedBatch> batches) override {
      for (const OwnedBatch& batch : batches) {
        for (const Sample& sample : batch.samples) {
          require_label(sample);
          labels.push_back(sample.label);
        }
      }
      const auto rank = static_cast<std::size_t>(set.ranks_.rank());
      const at::Tensor own = rank < batches.size() ? batches[rank].pictures : at::Tensor();
      // Of all ranks together, which must decide alike.
      fits = labels.size() * picture_bytes(set.input_.resize) <= set.most_held_bytes_;
      if (fits) {
        pictures.push_back(own);
      } else {
        pictures.clear();
      }
      use(own);
    }

    const LabelledSet& set;
    const UseRound& use;
    std::vector<std::string> labels;
    std::vector<at::Tensor> pictures;
    bool fits = false;
  };
  Reading reading(*this, use);
  const auto stream = open_();
  read_rounds(*stream, {.max_samples = max_samples_, .size = input_.resize, .batch = kBatch},
              reading, ranks_);
  if (reading.labels.empty()) {
    throw Error("the stream of a probe has no samples; it needs at least one");
  }
  if (known_ && reading.labels != labels_) {
    throw Error(cat("a probe's stream gave ", labels_.size(), " labelled pictures at first, then ",
                    reading.labels.size(), ", or others; it must stay as it is while it is read"));
  }
  labels_ = std::move(reading.labels);
  known_ = true;
  held_ = std::move(reading.pictures);
}

at::Tensor LabelledSet::encode(at::Device device, const Encode& encode) {
  // Where their number is known, rows go to their places as they come: put together in the end,
  // they would be there twice.
  const bool placed = known_;
  const std::int64_t count = std::ssize(labels_);
  at::Tensor all;
  std::vector<at::Tensor> parts;
  std::int64_t index = ranks_.rank(), done = 0;
  for_each_round([&](const at::Tensor& own) {
    const at::Tensor own_rows = own.defined() ? encode(own, index) : at::Tensor();
    const at::Tensor rows = ranks_.gather_rows(own_rows).to(device);
    index += ranks_.size();
    if (!placed) {
      parts.push_back(rows);
      return;
    }
    if (!all.defined()) {
      auto shape = rows.sizes().vec();
      shape[0] = count;
      all = torch::empty(shape, rows.options());
    }
    // What a stream gives beyond what it gave before is refused in the end.
    const std::int64_t more = std::min(rows.size(0), count - done);
    all.narrow(0, done, more).copy_(rows.narrow(0, 0, more));
    done += more;
  });
  return placed ? all : torch::cat(parts);
}

LabelledFeatures embed(Encoder& encoder, LabelledSet& set) {
  const at::Tensor features =
      set.encode(device_of(encoder), [&](const at::Tensor& pictures, std::int64_t) {
        return encode_pictures(encoder, pictures, set.input().crop);
      });
  return {features, set.labels()};
}

}  // namespace riffle
