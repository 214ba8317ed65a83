#include "riffle/eval/probe.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include <ATen/Parallel.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "riffle/augment/two_views.h"
#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/base/thread_pool.h"
#include "riffle/tensors/unit_length.h"

namespace riffle {
namespace {

// In blocks: the scores of all pictures for all of thousands of classes would be larger than any
// set's features.
at::Tensor linear_hits(const LinearClassifier& classifier, const at::Tensor& features,
                       const at::Tensor& classes) {
  constexpr std::int64_t kRows = 8192;
  std::vector<at::Tensor> parts;
  for (std::int64_t begin = 0; begin < features.size(0); begin += kRows) {
    const std::int64_t rows = std::min(kRows, features.size(0) - begin);
    const at::Tensor scores = classifier.scores(unit_length(features.narrow(0, begin, rows)));
    parts.push_back(top_hits(scores, classes.narrow(0, begin, rows)));
  }
  return torch::cat(parts);
}

ProbeResult measure(const EpochFeatures& linear_features, const LabelledFeatures& train,
                    const LabelledFeatures& val, const ClassLabels& classes,
                    const LinearRecipe& recipe, const KnnOptions& knn) {
  const auto classifier = fit_linear(linear_features, classes.train, classes.count(), recipe);
  const at::Tensor linear = linear_hits(classifier, val.features, classes.val);
  const at::Tensor voted =
      knn_classes(train.features, classes.train, classes.count(), val.features, knn);
  const at::Tensor nearest = voted == classes.val.to(voted.device());
  const at::Tensor hits = torch::cat({linear, nearest.unsqueeze(1)}, 1).cpu();
  const at::Tensor shares = hits.to(torch::kFloat64).mean(0);
  const double p = shares[0].item<double>();
  const auto train_count = std::ssize(train.labels);
  return {.linear_top1 = 100 * p,
          .linear_top5 = 100 * shares[1].item<double>(),
          .knn_top1 = 100 * shares[2].item<double>(),
          .standard_error = 100 * std::sqrt(p * (1 - p) / static_cast<double>(hits.size(0))),
          .recipe = cat(recipe.text(train_count), ", ", val.labels.size(), " validation pictures; ",
                        knn.text(train_count), "."),
          .hits = hits};
}

// Features of one random crop of every picture.
class CroppedFeatures {
 public:
  CroppedFeatures(Encoder& encoder, LabelledSet& set, std::uint64_t seed)
      : encoder_(encoder),
        set_(set),
        pool_(at::get_num_threads()),
        views_(probe_training_augmentation(set.input().crop), seed, pool_) {}

  at::Tensor epoch(std::int64_t number) const {
    constexpr std::int64_t kBatch = LabelledSet::kBatch;
    const std::int64_t steps = (std::ssize(set_.labels()) + kBatch - 1) / kBatch;
    const auto encode = [&](const at::Tensor& pictures, std::int64_t batch) {
      std::vector<std::int64_t> places(static_cast<std::size_t>(pictures.size(0)));
      std::iota(places.begin(), places.end(), 0);
      const auto step = static_cast<std::uint64_t>(number * steps + batch);
      return encode_frozen(encoder_, views_.one_view(pictures, places, step));
    };
    return set_.encode(device_of(encoder_), encode);
  }

 private:
  Encoder& encoder_;
  LabelledSet& set_;
  mutable ThreadPool pool_;
  TwoViews views_;
};

}  // namespace

ProbeResult probe(Encoder& encoder, LabelledSet& train, LabelledSet& val,
                  const LinearRecipe& recipe, const KnnOptions& knn) {
  const torch::NoGradGuard no_gradient;
  const auto val_features = embed(encoder, val);
  const auto train_features = embed(encoder, train);
  const auto classes = class_labels(train_features.labels, val_features.labels);
  if (!recipe.random_crops) {
    const auto plain = [&](std::int64_t) { return train_features.features; };
    return measure(plain, train_features, val_features, classes, recipe, knn);
  }
  const CroppedFeatures crops(encoder, train, recipe.seed);
  const auto cropped = [&](std::int64_t epoch) { return crops.epoch(epoch); };
  return measure(cropped, train_features, val_features, classes, recipe, knn);
}

ProbeResult probe(Encoder& encoder, const LabelledPictures& train, const LabelledPictures& val,
                  const LinearRecipe& recipe, const KnnOptions& knn) {
  const auto held = [](const LabelledPictures& set) {
    return LabelledSet(set, static_cast<int>(set.pictures.size(1)));
  };
  LabelledSet train_set = held(train), val_set = held(val);
  return probe(encoder, train_set, val_set, recipe, knn);
}

ProbeResult probe(const LabelledFeatures& train, const LabelledFeatures& val,
                  const LinearRecipe& recipe, const KnnOptions& knn) {
  if (recipe.random_crops) {
    throw Error(
        cat("probe recipe '", recipe.name,
            "' trains on random crops of pictures, but only features are given; use 'cached'"));
  }
  const auto classes = class_labels(train.labels, val.labels);
  const auto plain = [&](std::int64_t) { return train.features; };
  return measure(plain, train, val, classes, recipe, knn);
}

}  // namespace riffle
