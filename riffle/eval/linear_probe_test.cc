#include "riffle/eval/linear_probe.h"

#include <cstdlib>
#include <filesystem>
#include <map>

#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "riffle/base/error.h"
#include "riffle/base/testing/temp_folder.h"
#include "riffle/base/text.h"
#include "riffle/eval/embedding.h"
#include "riffle/eval/testing/clusters.h"
#include "riffle/tensors/safetensors.h"
#include "riffle/tensors/unit_length.h"

namespace riffle {
namespace {

using testing::HasSubstr;

// Tests run side by side: one thread each, but where several are the matter of the test.
class OneThread : public testing::Environment {
  void SetUp() override { at::set_num_threads(1); }
};
const auto* const kOneThread = testing::AddGlobalTestEnvironment(new OneThread);

LinearClassifier fit(const Clusters& train, std::int64_t classes, const LinearRecipe& recipe) {
  return fit_linear([&](std::int64_t) { return train.features; }, train.classes, classes, recipe);
}

TopAccuracy accuracy(const Clusters& train, const Clusters& val, std::int64_t classes,
                     const LinearRecipe& recipe) {
  return top_accuracy(fit(train, classes, recipe).scores(unit_length(val.features)), val.classes);
}

// Without crops, and with batches so small that a small set makes as many steps as LARS needs to
// grow the weights.
LinearRecipe plain(const char* name) {
  LinearRecipe recipe = linear_recipe(name);
  recipe.random_crops = false;
  recipe.batch = 32;
  return recipe;
}

class Recipes : public testing::TestWithParam<const char*> {};

TEST_P(Recipes, ReachAllOnSeparableFeatures) {
  const auto train = make_clusters(2000, 32, 8, 0.3f, 1, 1);
  const auto val = make_clusters(500, 32, 8, 0.3f, 1, 2);
  const auto result = accuracy(train, val, 8, plain(GetParam()));
  EXPECT_EQ(result.top1, 100);
  EXPECT_EQ(result.top5, 100);
}

TEST_P(Recipes, StayAtChanceOnRandomLabels) {
  auto train = make_clusters(2000, 32, 10, 0.5f, 1, 1);
  auto val = make_clusters(2000, 32, 10, 0.5f, 1, 2);
  // The features of these draws come from centres that know nothing of the labels.
  train.features = make_clusters(2000, 32, 7, 0.5f, 2, 3).features;
  val.features = make_clusters(2000, 32, 7, 0.5f, 2, 4).features;
  const auto result = accuracy(train, val, 10, plain(GetParam()));
  EXPECT_NEAR(result.top1, 10, 3);
  EXPECT_NEAR(result.top5, 50, 5);
}

TEST_P(Recipes, GiveTheSameForAnyThreadCount) {
  const auto train = make_clusters(1000, 32, 8, 2.5f, 1, 1);
  const auto val = make_clusters(500, 32, 8, 2.5f, 1, 2);
  std::vector<TopAccuracy> results;
  std::vector<at::Tensor> weights;
  for (const int count : {1, 3}) {
    at::set_num_threads(count);
    const auto classifier = fit(train, 8, plain(GetParam()));
    weights.push_back(classifier.weight);
    results.push_back(top_accuracy(classifier.scores(unit_length(val.features)), val.classes));
  }
  at::set_num_threads(1);
  for (std::size_t i = 1; i < results.size(); ++i) {
    EXPECT_EQ(results[i].top1, results[0].top1);
    EXPECT_EQ(results[i].top5, results[0].top5);
    EXPECT_TRUE(torch::allclose(weights[i], weights[0], 1e-9, 1e-11));
  }
  EXPECT_GT(results[0].top1, 20);
  EXPECT_LT(results[0].top1, 99);
  EXPECT_GE(results[0].top5, results[0].top1);
}

INSTANTIATE_TEST_SUITE_P(All, Recipes,
                         testing::Values("imagenet", "inaturalist", "full-imagenet", "cached",
                                         "softmax"),
                         [](const auto& recipe) {
                           std::string name = recipe.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST(Ridge, DoesNotDependOnTheOrderOfTheSamples) {
  const auto train = make_clusters(1500, 24, 6, 2.0f, 1, 1);
  const auto val = make_clusters(700, 24, 6, 2.0f, 1, 2);
  const Clusters reversed{train.features.flip(0), train.classes.flip(0)};
  const auto recipe = linear_recipe("cached");
  EXPECT_EQ(accuracy(train, val, 6, recipe).top1, accuracy(reversed, val, 6, recipe).top1);
}

TEST(Ridge, SolvesTheStatedProblem) {
  const auto train = make_clusters(400, 10, 4, 2.0f, 1, 1);
  auto recipe = linear_recipe("cached");
  const auto classifier = fit(train, 4, recipe);

  // Mean squared error plus penalty, on standardised features, by weights that a small step cannot
  // improve.
  const at::Tensor x = unit_length(train.features).to(torch::kFloat64);
  const at::Tensor scale = x.std(0, /*unbiased=*/false);
  const at::Tensor z = (x - x.mean(0)) / scale;
  const at::Tensor y = torch::one_hot(train.classes, 4).to(torch::kFloat64);
  const at::Tensor weight = classifier.weight * scale;
  const at::Tensor intercept = classifier.bias + classifier.weight.mv(x.mean(0));
  const at::Tensor residual = z.mm(weight.t()) + intercept - y;
  const at::Tensor by_weight = residual.t().mm(z) / 400 + recipe.penalty * weight;
  EXPECT_LT(by_weight.abs().max().item<double>(), 1e-10);
  EXPECT_LT(residual.mean(0).abs().max().item<double>(), 1e-10);
}

TEST(Ridge, BearsConstantChannelsAndMoreChannelsThanSamples) {
  auto train = make_clusters(30, 60, 3, 0.2f, 1, 1);
  auto val = make_clusters(90, 60, 3, 0.2f, 1, 2);
  for (auto* set : {&train, &val}) set->features.narrow(1, 0, 20).zero_();
  const auto result = accuracy(train, val, 3, linear_recipe("cached"));
  EXPECT_EQ(result.top1, 100);
}

TEST(LinearProbe, BearsFeaturesThatCollapsed) {
  Clusters train = make_clusters(200, 16, 4, 1.0f, 1, 1);
  train.features.fill_(0.5f);
  for (const char* name : {"cached", "imagenet"}) {
    const auto result = accuracy(train, train, 4, plain(name));
    EXPECT_LT(result.top1, 50) << name;
    EXPECT_GT(result.top1, 10) << name;
  }
}

TEST(TopAccuracy, CountsTheTrueClassAmongTheHighest) {
  const at::Tensor scores = torch::tensor({{6., 5., 4., 3., 2., 1.},
                                           {6., 5., 4., 3., 2., 1.},
                                           {6., 5., 4., 3., 2., 1.},
                                           {6., 5., 4., 3., 2., 1.}});
  const auto result = top_accuracy(scores, torch::tensor({0, 1, 4, 5}));
  EXPECT_EQ(result.top1, 25);
  EXPECT_EQ(result.top5, 75);
}

TEST(LinearRecipe, HasThePapersPresets) {
  EXPECT_EQ(linear_recipe("imagenet").epochs, 10);
  EXPECT_EQ(linear_recipe("imagenet").lr, 3);
  EXPECT_EQ(linear_recipe("inaturalist").epochs, 20);
  EXPECT_EQ(linear_recipe("inaturalist").lr, 12);
  EXPECT_EQ(linear_recipe("full-imagenet").epochs, 30);
  EXPECT_EQ(linear_recipe("full-imagenet").lr, 3);
  for (const char* name : {"imagenet", "inaturalist", "full-imagenet"}) {
    const auto recipe = linear_recipe(name);
    EXPECT_EQ(recipe.batch, 1024);
    EXPECT_EQ(recipe.momentum, 0.9);
    EXPECT_EQ(recipe.trust, 0.001);
    EXPECT_TRUE(recipe.random_crops);
  }
}

TEST(LinearRecipe, SaysEveryFigure) {
  const std::string text = linear_recipe("inaturalist").text(5000);
  for (const char* part :
       {"inaturalist", "LARS (trust 0.001", "momentum 0.9", "no weight decay", "lr 12", "cosine",
        "batch 1024", "20 epochs", "5000 training pictures", "random crop", "unit length"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  EXPECT_THAT(linear_recipe("imagenet").text(100), HasSubstr("batch 100,"));
  EXPECT_THAT(linear_recipe("cached").text(5000), HasSubstr("ridge"));
}

TEST(LinearRecipe, AnUnknownNameGetsTheNearest) {
  try {
    linear_recipe("imagnet");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("did you mean 'imagenet'?"));
  }
}

// The recipe written a second time, in Python with autograd, from the same first weights.
class LarsParity : public TempFolder {
 protected:
  void SetUp() override {
    if (std::string(RIFFLE_PYTHON).empty() || !std::filesystem::exists(RIFFLE_PYTHON)) {
      GTEST_SKIP() << "needs a Python with torch; none was found at configure time";
    }
  }

  LinearClassifier reference(const Clusters& train, std::int64_t classes,
                             const LinearRecipe& recipe) {
    LinearRecipe still = recipe;
    still.lr = 0;
    still.epochs = 1;
    const auto in = folder_ / "in.safetensors";
    const auto out = folder_ / "out.safetensors";
    write_safetensors(in, {{"features", train.features},
                           {"classes", train.classes},
                           {"weight", fit(train, classes, still).weight}});
    const std::string command =
        cat("LD_PRELOAD= '", RIFFLE_PYTHON, "' '", RIFFLE_SOURCE_DIR,
            "/riffle/eval/testdata/linear_probe_reference.py' '", in.string(), "' '", out.string(),
            "' ", recipe.epochs, ' ', recipe.lr, ' ', recipe.batch);
    if (std::system(command.c_str()) != 0) throw std::runtime_error("failed: " + command);
    const auto tensors = read_safetensors(out).tensors;
    const std::map<std::string, at::Tensor> by_name(tensors.begin(), tensors.end());
    return {by_name.at("weight"), by_name.at("bias")};
  }
};

TEST_F(LarsParity, WeightsAfterWholeBatchStepsAreThoseOfAnIndependentImplementation) {
  const auto train = make_clusters(600, 32, 10, 2.0f, 1, 1);
  auto recipe = plain("inaturalist");
  recipe.batch = 600;
  const auto ours = fit(train, 10, recipe);
  const auto theirs = reference(train, 10, recipe);
  EXPECT_TRUE(torch::allclose(ours.weight, theirs.weight, 1e-6, 1e-9));
  EXPECT_TRUE(torch::allclose(ours.bias, theirs.bias, 1e-6, 1e-9));
}

TEST_F(LarsParity, AccuracyAgreesWithinHalfAPointWhateverTheOrderOfBatches) {
  const auto train = make_clusters(4000, 32, 10, 3.0f, 1, 1);
  const auto val = make_clusters(4000, 32, 10, 3.0f, 1, 2);
  auto recipe = plain("full-imagenet");
  recipe.batch = 100;
  const auto rows = unit_length(val.features);
  const auto ours = top_accuracy(fit(train, 20, recipe).scores(rows), val.classes);
  const auto theirs = top_accuracy(reference(train, 20, recipe).scores(rows), val.classes);
  EXPECT_NEAR(ours.top1, theirs.top1, 0.5);
  EXPECT_NEAR(ours.top5, theirs.top5, 0.5);
  EXPECT_GT(ours.top1, 30);
  EXPECT_LT(ours.top1, 95);
}

}  // namespace
}  // namespace riffle
