#include "riffle/image/decoding_memory.h"

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace riffle {
namespace {

TEST(DecodingMemory, ThreadsTogetherHoldNoMoreThanThereIs) {
  std::atomic<std::uint64_t> held = 0, most = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 200; ++j) {
        const std::uint64_t bytes = DecodingMemory::most() / 3;
        const DecodingMemory memory(bytes);
        const std::uint64_t now = held += bytes;
        for (auto seen = most.load(); seen < now && !most.compare_exchange_weak(seen, now);) {
        }
        held -= bytes;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_LE(most, DecodingMemory::most());
}

TEST(DecodingMemory, APictureLargerThanThatIsDecodedAlone) {
  std::atomic<int> inside = 0;
  std::atomic<bool> together = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 50; ++j) {
        const DecodingMemory memory(DecodingMemory::most() + 1);
        if (++inside > 1) together = true;
        --inside;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_FALSE(together);
}

}  // namespace
}  // namespace riffle
