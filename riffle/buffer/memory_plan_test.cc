#include "riffle/buffer/memory_plan.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "riffle/base/error.h"
#include "riffle/base/text.h"

namespace riffle {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

BufferConfig config_of(const std::string& policy, const std::string& capacity) {
  BufferConfig config;
  config.policy = policy;
  config.capacity = capacity;
  return config;
}

TEST(MemoryPlan, CapacityIsReadInSamplesOrBytes) {
  EXPECT_EQ(parse_capacity("65536").samples, 65536);
  EXPECT_EQ(parse_capacity("65536").bytes, 0u);
  EXPECT_EQ(parse_capacity("8GiB").bytes, std::uint64_t{8} << 30);
  EXPECT_EQ(parse_capacity("8GiB").samples, 0);
  EXPECT_EQ(parse_capacity("1.5 KiB").bytes, 1536u);
  EXPECT_EQ(parse_capacity("500MB").bytes, 500'000'000u);
  EXPECT_EQ(parse_capacity("2TB").bytes, 2'000'000'000'000u);
  EXPECT_EQ(parse_capacity("8gib").bytes, std::uint64_t{8} << 30);
  EXPECT_EQ(parse_capacity("8G").bytes, std::uint64_t{8} << 30);
  EXPECT_EQ(parse_capacity("64k").samples, 65536);
  for (const char* unclear : {"1M", "k", "0k", "8x", "-1k", "9999999999k"}) {
    EXPECT_THROW(parse_capacity(unclear), Error) << unclear;
  }
}

TEST(MemoryPlan, PartsCoverCapacityAndOneBatch) {
  const auto plan = plan_memory(config_of("minred", "1000"), 24, 32, 64, at::kCPU);
  EXPECT_EQ(plan.capacity, 1000);
  EXPECT_EQ(plan.pictures, 1024u * 32 * 32 * 3);
  EXPECT_EQ(plan.features, 1024u * 64 * 2);  // float16
  EXPECT_GT(plan.index, 0u);
  EXPECT_GT(plan.records, 0u);
  EXPECT_EQ(plan.on_device(), 0u);
  EXPECT_EQ(plan.on_host(), plan.pictures + plan.features + plan.index + plan.records);
}

TEST(MemoryPlan, PairsTakeTwicePicturesAndNothingElse) {
  auto config = config_of("minred", "1000");
  const auto plan = plan_memory(config, 24, 32, 64, at::kCPU);
  config.pairs = true;
  const auto pairs = plan_memory(config, 24, 32, 64, at::kCPU);
  EXPECT_EQ(pairs.pictures, 2 * plan.pictures);
  EXPECT_EQ(pairs.total() - pairs.pictures, plan.total() - plan.pictures);
}

TEST(MemoryPlan, OnlyMinRedPaysForFeatures) {
  const auto plan = plan_memory(config_of("fifo", "1000"), 24, 32, 64, at::kCPU);
  EXPECT_EQ(plan.features + plan.index, 0u);
}

TEST(MemoryPlan, WithoutAPolicyOneBatchIsEnough) {
  EXPECT_EQ(plan_memory(config_of("none", "1000"), 24, 32, 64, at::kCPU).capacity, 24);
}

TEST(MemoryPlan, JpegTakesAboutAnEighth) {
  auto config = config_of("fifo", "65536");
  const auto raw = plan_memory(config, 256, 224, 0, at::kCPU);
  config.storage = Storage::jpeg;
  const auto jpeg = plan_memory(config, 256, 224, 0, at::kCPU);
  EXPECT_LT(jpeg.pictures, raw.pictures / 7);
  EXPECT_GT(jpeg.pictures, raw.pictures / 9);
}

TEST(MemoryPlan, BytesGiveTheLargestBufferThatFitsThem) {
  for (const auto policy : {"fifo", "minred"}) {
    const auto plan = plan_memory(config_of(policy, "10MB"), 16, 32, 128, at::kCPU);
    EXPECT_LE(plan.total(), 10'000'000u);
    const auto more = config_of(policy, cat(plan.capacity + 1));
    EXPECT_GT(plan_memory(more, 16, 32, 128, at::kCPU).total(), 10'000'000u);
  }
}

TEST(MemoryPlan, LessThanABatchIsRefused) {
  EXPECT_THAT([] { plan_memory(config_of("fifo", "63"), 64, 32, 8, at::kCPU); },
              ThrowsMessage<Error>(AllOf(HasSubstr("buffer.capacity"), HasSubstr("64"))));
  EXPECT_THAT([] { plan_memory(config_of("fifo", "300KB"), 64, 32, 8, at::kCPU); },
              ThrowsMessage<Error>(AllOf(HasSubstr("300KB"), HasSubstr("needs"))));
}

TEST(MemoryPlan, WhatDoesNotFitIsRefusedWithNeededAndAvailableBytes) {
  const auto plan = plan_memory(config_of("fifo", "1000"), 24, 32, 64, at::kCPU);
  require_fits(plan, {plan.total(), 0});
  EXPECT_THAT(
      [&] {
        require_fits(plan, {plan.total() - 1, 0});
      },
      ThrowsMessage<Error>(AllOf(HasSubstr(cat(plan.total())), HasSubstr(cat(plan.total() - 1)))));
}

TEST(MemoryPlan, TheBestMemoryIsTheGpusWhenHalfOfItIsEnough) {
  auto config = config_of("fifo", "1000");
  const auto chosen = [&](at::Device device, std::uint64_t free) {
    return choose_memory(config, 24, 32, 64, device, {std::uint64_t{1} << 40, free});
  };
  const std::uint64_t pictures = plan_memory(config, 24, 32, 64, at::kCPU).pictures;
  EXPECT_EQ(chosen(at::kCUDA, 2 * pictures), BufferMemory::gpu);
  EXPECT_EQ(chosen(at::kCUDA, 2 * pictures - 2), BufferMemory::host);
  EXPECT_EQ(chosen(at::kCPU, 2 * pictures), BufferMemory::host);
  config.memory = BufferMemory::host;
  EXPECT_EQ(chosen(at::kCUDA, 2 * pictures), BufferMemory::host);
  config.memory = BufferMemory::best;
  config.storage = Storage::jpeg;
  EXPECT_EQ(chosen(at::kCUDA, 2 * pictures), BufferMemory::host);
}

TEST(MemoryPlan, AvailableMemoryIsThatOfARealMachine) {
  const auto available = available_memory(at::kCPU);
  EXPECT_GT(available.host, 1u << 20);
  EXPECT_LT(available.host, std::uint64_t{1} << 50);
}

}  // namespace
}  // namespace riffle
