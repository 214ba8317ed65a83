#include "riffle/eval/knn.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>
#include <torch/types.h>

#include "riffle/base/testing/memory_rise.h"
#include "riffle/eval/testing/clusters.h"

namespace riffle {
namespace {

// The definition, a picture at a time.
std::vector<std::int64_t> naive(const Clusters& train, const Clusters& val, std::int64_t classes,
                                const KnnOptions& options) {
  const auto x = train.features.accessor<float, 2>();
  const auto q = val.features.accessor<float, 2>();
  const auto cosine = [&](std::int64_t a, std::int64_t b) {
    double product = 0, aa = 0, bb = 0;
    for (std::int64_t j = 0; j < x.size(1); ++j) {
      product += double(q[a][j]) * x[b][j];
      aa += double(q[a][j]) * q[a][j];
      bb += double(x[b][j]) * x[b][j];
    }
    return product / std::sqrt(aa * bb);
  };
  std::vector<std::int64_t> result;
  for (std::int64_t a = 0; a < q.size(0); ++a) {
    std::vector<std::pair<double, std::int64_t>> near;
    for (std::int64_t b = 0; b < x.size(0); ++b) near.emplace_back(-cosine(a, b), b);
    std::sort(near.begin(), near.end());
    near.resize(std::min<std::size_t>(near.size(), static_cast<std::size_t>(options.k)));
    std::vector<double> votes(static_cast<std::size_t>(classes));
    for (const auto& [negative, b] : near) {
      votes[static_cast<std::size_t>(train.classes[b].item<std::int64_t>())] +=
          std::exp(-negative / options.temperature);
    }
    result.push_back(std::max_element(votes.begin(), votes.end()) - votes.begin());
  }
  return result;
}

std::vector<std::int64_t> ours(const Clusters& train, const Clusters& val, std::int64_t classes,
                               const KnnOptions& options) {
  const at::Tensor voted =
      knn_classes(train.features, train.classes, classes, val.features, options);
  const auto* values = voted.data_ptr<std::int64_t>();
  return {values, values + voted.numel()};
}

TEST(Knn, AgreesWithTheDefinition) {
  const auto train = make_clusters(300, 12, 6, 2.0f, 1, 1);
  const auto val = make_clusters(120, 12, 6, 2.0f, 1, 2);
  for (const std::int64_t k : {1, 5, 20, 200}) {
    for (const double temperature : {0.07, 1.0}) {
      const KnnOptions options{.k = k, .temperature = temperature};
      EXPECT_EQ(ours(train, val, 6, options), naive(train, val, 6, options));
    }
  }
}

TEST(Knn, TrainingFeaturesInSeveralBlocksAreAllNeighbours) {
  const auto train = make_clusters(20'000, 12, 6, 2.0f, 1, 1);
  const auto val = make_clusters(4, 12, 6, 2.0f, 1, 2);
  EXPECT_EQ(ours(train, val, 6, {}), naive(train, val, 6, {}));
}

// A large training set is much of what fits.
TEST(Knn, CopiesTrainingFeaturesOnce) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer keeps freed memory for a while";
#endif
  const at::Tensor train = torch::ones({200'000, 256});
  const at::Tensor classes = torch::zeros({train.size(0)}, torch::kInt64);
  const auto rise = memory_rise([&] { knn_classes(train, classes, 1, train.narrow(0, 0, 1), {}); });
  if (!rise) GTEST_SKIP() << "the kernel's high-water mark cannot be lowered here";
  EXPECT_LT(static_cast<double>(*rise), 1.5 * static_cast<double>(train.nbytes()));
}

TEST(Knn, MoreNeighboursThanPicturesAreAll) {
  const auto train = make_clusters(15, 12, 3, 1.0f, 1, 1);
  const auto val = make_clusters(40, 12, 3, 1.0f, 1, 2);
  EXPECT_EQ(ours(train, val, 3, {.k = 200}), ours(train, val, 3, {.k = 15}));
  EXPECT_EQ(KnnOptions{.k = 200}.text(15), "k-NN by cosine similarity, k 15, temperature 0.07");
}

TEST(Knn, DoesNotDependOnLengthsOrOnTheBlocks) {
  // Several blocks: one holds 2^24 / 5000 = 3355 rows.
  const auto train = make_clusters(5000, 4, 3, 1.0f, 1, 1);
  auto val = make_clusters(4000, 4, 3, 1.0f, 1, 2);
  const auto whole = ours(train, val, 3, {});
  const Clusters end{val.features.narrow(0, 3990, 10) * 7, val.classes.narrow(0, 3990, 10)};
  const auto part = ours(train, end, 3, {});
  EXPECT_EQ(std::vector(whole.end() - 10, whole.end()), part);
}

TEST(Knn, FindsSeparableClasses) {
  const auto train = make_clusters(400, 32, 8, 0.3f, 1, 1);
  const auto val = make_clusters(200, 32, 8, 0.3f, 1, 2);
  const at::Tensor voted = knn_classes(train.features, train.classes, 8, val.features, {});
  EXPECT_TRUE(torch::equal(voted, val.classes));
}

}  // namespace
}  // namespace riffle
