#include "riffle/eval/labelled_set.h"

#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "riffle/base/error.h"
#include "riffle/base/log.h"
#include "riffle/base/testing/memory_rise.h"
#include "riffle/base/text.h"
#include "riffle/eval/probe.h"
#include "riffle/eval/testing/narrow_model.h"

namespace riffle {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

LabelledSet::Open synthetic_source(int seed, int samples, int size = 16) {
  return [=] {
    return open_stream(
        cat("synthetic:?frames=1&classes=4&size=", size, "&seed=", seed, "&samples=", samples));
  };
}

LinearRecipe few_epochs() {
  LinearRecipe recipe = linear_recipe("imagenet");
  recipe.epochs = 3;
  recipe.batch = 64;
  return recipe;
}

class LabelledSetTest : public testing::Test {
 protected:
  LabelledSetTest() { set_log_level(LogLevel::quiet); }
  ~LabelledSetTest() override { set_log_level(LogLevel::info); }
};

TEST_F(LabelledSetTest, ReadAgainOrHeldGivesTheSame) {
  const auto model = narrow_model();
  for (const LinearRecipe& recipe : {linear_recipe("cached"), few_epochs()}) {
    std::vector<ProbeResult> results;
    for (const std::uint64_t held : {std::uint64_t{0}, LabelledSet::kMostHeldBytes}) {
      LabelledSet train(synthetic_source(1, 300), 0, 16, held);
      LabelledSet val(synthetic_source(2, 100), 0, 16, held);
      results.push_back(probe(*model, train, val, recipe));
      EXPECT_EQ(train.labels().size(), 300u);
    }
    EXPECT_TRUE(torch::equal(results[0].hits, results[1].hits)) << recipe.name;
  }
}

TEST_F(LabelledSetTest, TheEncoderSeesTheCentreOfALargerPicture) {
  const auto model = narrow_model();
  LabelledSet whole(synthetic_source(1, 12, 32), 0, 32);
  LabelledSet centre(synthetic_source(1, 12, 32), 0, {32, 24});
  at::Tensor all, cut;
  whole.encode(at::kCPU, [&](const at::Tensor& pictures, std::int64_t) {
    all = pictures;
    cut = pictures.narrow(1, 4, 24).narrow(2, 4, 24).contiguous();
    return pictures;
  });
  LabelledSet expected({cut, whole.labels()}, 24);
  LabelledSet given({all, whole.labels()}, {32, 24});
  EXPECT_TRUE(torch::equal(embed(*model, centre).features, embed(*model, expected).features));
  EXPECT_TRUE(torch::equal(embed(*model, given).features, embed(*model, expected).features));
  const auto stream = synthetic_source(1, 12, 32)();
  EXPECT_TRUE(torch::allclose(embed(*model, *stream, 0, {32, 24}).features,
                              embed(*model, expected).features));
}

TEST_F(LabelledSetTest, AStreamThatChangesBetweenReadingsIsAnError) {
  int samples = 20;
  LabelledSet set([&] { return synthetic_source(1, samples++)(); }, 0, 16, 0);
  EXPECT_EQ(set.labels().size(), 20u);
  EXPECT_THAT([&] { embed(*narrow_model(), set); },
              ThrowsMessage<Error>(HasSubstr("must stay as it is")));
}

TEST_F(LabelledSetTest, OneThatGivesMoreOrLessThanBeforeIsAnErrorOfItsOwn) {
  for (const int second : {600, 100}) {
    int samples = 300;
    LabelledSet set([&] { return synthetic_source(1, std::exchange(samples, second))(); }, 0, 16,
                    0);
    EXPECT_EQ(set.labels().size(), 300u);
    EXPECT_THAT([&] { embed(*narrow_model(), set); },
                ThrowsMessage<Error>(HasSubstr("must stay as it is")));
  }
}

// Those of a training set are held beside those of an epoch.
TEST_F(LabelledSetTest, FeaturesOfASetThatWasReadAreInMemoryOnce) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer keeps freed memory for a while";
#endif
  constexpr std::int64_t kPictures = 4000, kFeatures = 16384;
  LabelledSet set(synthetic_source(1, kPictures), 0, 16);
  const auto encode = [](const at::Tensor& pictures, std::int64_t batch) {
    return torch::full({pictures.size(0), kFeatures}, static_cast<float>(batch));
  };
  const at::Tensor expected = set.encode(at::kCPU, [](const auto& pictures, std::int64_t batch) {
    return torch::full({pictures.size(0), 1}, static_cast<float>(batch));
  });
  at::Tensor features;
  const auto rise = memory_rise([&] { features = set.encode(at::kCPU, encode); });
  EXPECT_TRUE(torch::equal(features.narrow(1, 7, 1), expected));
  if (!rise) GTEST_SKIP() << "the kernel's high-water mark cannot be lowered here";
  EXPECT_LT(static_cast<double>(*rise), 1.5 * static_cast<double>(features.nbytes()));
}

// Returns by how much the process grows at most, in MiB, during a probe on this many pictures with
// random crops.
std::optional<double> growth(int pictures, std::uint64_t held) {
  constexpr int kSize = 96;
  const auto model = narrow_model();
  LinearRecipe recipe = few_epochs();
  recipe.epochs = 1;
  LabelledSet train(synthetic_source(1, pictures, kSize), 0, kSize, held);
  LabelledSet val(synthetic_source(2, 64, kSize), 0, kSize, held);
  const auto rise = memory_rise([&] { probe(*model, train, val, recipe); });
  if (!rise) return std::nullopt;
  return static_cast<double>(*rise) / (1 << 20);
}

// As on ImageNet, where 1.28 million pictures of 256 px would be 252 GB.
TEST_F(LabelledSetTest, MemoryDoesNotGrowWithTheNumberOfPictures) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer keeps freed memory for a while";
#endif
  constexpr std::uint64_t kLimit = std::uint64_t{1} << 20;
  if (!growth(300, kLimit)) {  // what the process needs once
    GTEST_SKIP() << "the kernel's high-water mark cannot be lowered here";
  }
  // Batches on their way take up to 60 MiB, however many pictures there are.
  EXPECT_LT(*growth(6000, kLimit), 100) << "held, the pictures alone would be 158 MiB";
  EXPECT_GT(*growth(6000, LabelledSet::kMostHeldBytes), 120);
}

}  // namespace
}  // namespace riffle
