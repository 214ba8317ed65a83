#include "riffle/bench/minred_bench.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/cuda.h>

#include "riffle/base/error.h"

namespace riffle {
namespace {

MinredBenchConfig small(const std::string& device) {
  MinredBenchConfig config;
  config.device = at::Device(device);
  config.capacity = 200;
  config.dim = 16;
  config.batch = 20;
  config.warm_batches = 2;
  config.batches = 4;
  return config;
}

TEST(MinredBench, BothWaysRemoveTheSameRows) {
  for (const char* device : {"cpu", "cuda"}) {
    if (std::string(device) == "cuda" && !torch::cuda::is_available()) continue;
    for (const FeatureType type : {FeatureType::float32, FeatureType::float16}) {
      MinredBenchConfig config = small(device);
      config.type = type;
      const MinredBenchResult result = bench_minred(config);
      EXPECT_TRUE(result.same_evictions) << device;
      EXPECT_EQ(result.authors_skipped, "");
      EXPECT_GT(result.per_step_ms, 0);
      EXPECT_GE(result.per_stream_batch_ms, result.take_ms);
      EXPECT_GT(result.ratio, 0);
      EXPECT_GT(result.peak_bytes, 200u * 16 * 2);
      EXPECT_LE(result.stats.largest_rounding, result.stats.allowed_rounding);
    }
  }
}

TEST(MinredBench, TheAuthorsWayCanBeLeftOut) {
  MinredBenchConfig config = small("cpu");
  config.authors_batches = 0;
  const MinredBenchResult result = bench_minred(config);
  EXPECT_NE(result.authors_skipped, "");
  EXPECT_EQ(result.authors_per_stream_batch_ms, 0);
}

TEST(MinredBench, RefusesNumbersThatMakeNoSense) {
  MinredBenchConfig config = small("cpu");
  config.capacity = 10;
  EXPECT_THROW(bench_minred(config), Error);
}

}  // namespace
}  // namespace riffle
