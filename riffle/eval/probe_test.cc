#include "riffle/eval/probe.h"

#include <cstring>

#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/model/objective.h"

namespace riffle {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <typename Function>
std::string error_of(const Function& function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// Pictures of one grey level each; the label says whether it is dark.
class GreyStream : public Stream {
 public:
  GreyStream(std::uint64_t length, bool labelled) : length_(length), labelled_(labelled) {}

  std::optional<Sample> next() override {
    if (index_ >= length_) return std::nullopt;
    Sample sample;
    sample.picture = Picture(6, 4);
    const auto level = static_cast<std::uint8_t>(index_ * 37 % 256);
    std::fill(sample.picture.rgb.begin(), sample.picture.rgb.end(), level);
    sample.index = index_++;
    sample.key = cat("grey-", sample.index);
    if (labelled_) sample.label = level < 128 ? "dark" : "bright";
    return sample;
  }
  std::string position() const override { return std::to_string(index_); }
  void seek(const std::string& position) override { index_ = std::stoull(position); }

 private:
  std::uint64_t length_;
  bool labelled_;
  std::uint64_t index_ = 0;
};

std::shared_ptr<Objective> small_model() {
  return make_objective({.arch = Arch::resnet10,
                         .stem = Stem::stride2,
                         .width = 8,
                         .projector_hidden = 16,
                         .projector_out = 16,
                         .predictor_hidden = 8},
                        5);
}

LabelledPictures synthetic(int seed, int samples) {
  const auto stream =
      open_stream(cat("synthetic:?frames=1&classes=4&size=32&seed=", seed, "&samples=", samples));
  return collect(*stream, 0, 32);
}

TEST(Collect, FitsPicturesAndKeepsTheirOrder) {
  GreyStream stream(10, true);
  const auto set = collect(stream, 0, 4);
  EXPECT_THAT(set.pictures.sizes(), ElementsAre(10, 4, 4, 3));
  EXPECT_EQ(set.labels.size(), 10u);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(set.pictures[i].min().item<int>(), i * 37 % 256);
    EXPECT_EQ(set.pictures[i].max().item<int>(), i * 37 % 256);
  }
}

TEST(Collect, TakesNoMoreThanAskedFor) {
  GreyStream stream(10, true);
  EXPECT_EQ(collect(stream, 7, 4).labels.size(), 7u);
  EXPECT_EQ(stream.position(), "7");
}

TEST(Collect, NamesASampleWithoutLabel) {
  GreyStream stream(10, false);
  EXPECT_THAT(error_of([&] { collect(stream, 0, 4); }), HasSubstr("'grey-0') has no label"));
}

TEST(Collect, RefusesAnEmptyStream) {
  GreyStream stream(0, true);
  EXPECT_THAT(error_of([&] { collect(stream, 0, 4); }), HasSubstr("has no samples"));
}

TEST(ProbeSet, IsKnownToHaveLabelsByItsFirstSample) {
  GreyStream labelled(10, true), unlabelled(10, false), empty(0, true);
  require_first_label(labelled);
  EXPECT_EQ(labelled.next()->index, 1u) << "more than one was read";
  EXPECT_THAT(error_of([&] { require_first_label(unlabelled); }),
              HasSubstr("'grey-0') has no label"));
  EXPECT_THAT(error_of([&] { require_first_label(empty); }), HasSubstr("has no samples"));
}

TEST(Embed, IsTheSameFromStreamAndPicturesAndForAnyBatch) {
  const auto model = small_model();
  GreyStream stream(23, true);
  const auto pictures = collect(stream, 0, 32);
  const auto whole = embed(*model, pictures, 23);
  EXPECT_THAT(whole.features.sizes(), ElementsAre(23, model->encoder_dim()));
  for (const std::int64_t batch : {1, 5, 64}) {
    GreyStream again(23, true);
    const auto streamed = embed(*model, again, 0, 32, batch);
    EXPECT_EQ(streamed.labels, whole.labels);
    EXPECT_TRUE(torch::allclose(streamed.features, whole.features, 1e-5, 1e-6));
    EXPECT_TRUE(
        torch::allclose(embed(*model, pictures, batch).features, whole.features, 1e-5, 1e-6));
  }
  GreyStream some(23, true);
  EXPECT_EQ(embed(*model, some, 9, 32, 4).labels.size(), 9u);
}

TEST(ClassLabels, AreNumberedBySortedName) {
  const auto classes = class_labels({"b", "a", "c", "a"}, {"c", "b"});
  EXPECT_THAT(classes.names, ElementsAre("a", "b", "c"));
  EXPECT_TRUE(torch::equal(classes.train, torch::tensor({1, 0, 2, 0})));
  EXPECT_TRUE(torch::equal(classes.val, torch::tensor({2, 1})));
}

TEST(ClassLabels, NamesAndCountsLabelsThatTrainingLacks) {
  const std::string message = error_of([] { class_labels({"a", "b"}, {"x", "a", "y", "x"}); });
  EXPECT_THAT(message, HasSubstr("3 of 4 validation pictures"));
  EXPECT_THAT(message, HasSubstr("'x' (2), 'y' (1)"));
  EXPECT_THAT(error_of([] { class_labels({"a", "a"}, {"a"}); }), HasSubstr("only 'a'"));
}

TEST(Probe, OfAnUntrainedNetworkFindsWhatIsEasy) {
  GreyStream train(256, true);
  GreyStream val(100, true);
  const auto result =
      probe(*small_model(), collect(train, 0, 32), collect(val, 0, 32), linear_recipe("cached"));
  EXPECT_GT(result.linear_top1, 90);
  EXPECT_GT(result.knn_top1, 90);
}

TEST(Probe, GivesTheSameForAnyThreadCount) {
  const auto train = synthetic(11, 400);
  const auto val = synthetic(12, 200);
  const auto model = small_model();
  at::set_num_threads(3);
  const auto first = probe(*model, train, val, linear_recipe("cached"));
  at::set_num_threads(1);
  const auto second = probe(*small_model(), train, val, linear_recipe("cached"));
  EXPECT_EQ(first.linear_top1, second.linear_top1);
  EXPECT_EQ(first.linear_top5, 100);
  EXPECT_EQ(first.knn_top1, second.knn_top1);
  EXPECT_NEAR(first.standard_error, std::sqrt(first.linear_top1 * (100 - first.linear_top1) / 200),
              1e-9);
  EXPECT_THAT(first.recipe, HasSubstr("400 training pictures"));
  EXPECT_THAT(first.recipe, HasSubstr("200 validation pictures"));
  EXPECT_THAT(first.recipe, HasSubstr("k 20, temperature 0.07"));
}

TEST(Probe, OnFeaturesIsTheProbeOnPictures) {
  const auto train = synthetic(11, 200);
  const auto val = synthetic(12, 100);
  const auto model = small_model();
  const auto recipe = linear_recipe("cached");
  const auto pictures = probe(*model, train, val, recipe);
  const auto features = probe(embed(*model, train), embed(*model, val), recipe);
  EXPECT_EQ(pictures.linear_top1, features.linear_top1);
  EXPECT_EQ(pictures.knn_top1, features.knn_top1);
  EXPECT_EQ(pictures.recipe, features.recipe);
  EXPECT_THAT(
      error_of([&] { probe(embed(*model, train), embed(*model, val), linear_recipe("imagenet")); }),
      HasSubstr("'imagenet' trains on random crops"));
}

TEST(Probe, TrainsOnNewCropsEachEpochAsThePaperDoes) {
  const auto train = synthetic(11, 200);
  const auto val = synthetic(12, 100);
  const auto model = small_model();
  auto recipe = linear_recipe("imagenet");
  recipe.epochs = 3;
  const auto cropped = probe(*model, train, val, recipe);
  EXPECT_EQ(cropped.linear_top1, probe(*model, train, val, recipe).linear_top1);
  EXPECT_THAT(cropped.recipe, HasSubstr("3 epochs of 200 training pictures with random crop"));
  EXPECT_GT(cropped.linear_top1, 20);
}

TEST(Probe, LeavesTheModelAsItWas) {
  const auto model = small_model();
  model->train();
  std::vector<at::Tensor> before;
  for (const auto& tensor : model->parameters()) before.push_back(tensor.clone());
  for (const auto& tensor : model->buffers()) before.push_back(tensor.clone());
  probe(*model, synthetic(11, 60), synthetic(12, 40), linear_recipe("cached"));
  EXPECT_TRUE(model->is_training());
  std::size_t i = 0;
  for (const auto& tensor : model->parameters()) EXPECT_TRUE(torch::equal(tensor, before[i++]));
  for (const auto& tensor : model->buffers()) EXPECT_TRUE(torch::equal(tensor, before[i++]));
}

}  // namespace
}  // namespace riffle
