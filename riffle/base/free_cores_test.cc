#include "riffle/base/free_cores.h"

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace riffle {
namespace {

TEST(FreeCores, OthersThatComputeLeaveFewer) {
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  const double before = measure_free_cores();
  EXPECT_GT(before, 0);
  EXPECT_LT(before, cores + 0.1);
  std::atomic<bool> over = false;
  std::vector<std::thread> others;
  for (unsigned i = 0; i < 4 * cores; ++i) {
    others.emplace_back([&] {
      while (!over) {
      }
    });
  }
  const double beside = measure_free_cores(0.3);
  over = true;
  for (auto& other : others) other.join();
  EXPECT_LT(beside, 0.6 * cores) << "four others on each core";
}

TEST(FreeCores, ThreadsAreAsManyAsWholeCoresAreFree) {
  EXPECT_EQ(threads_for(0.1), 1);
  EXPECT_EQ(threads_for(1.4), 1);
  EXPECT_EQ(threads_for(1.8), 2);
  EXPECT_EQ(threads_for(2), 2);
  EXPECT_EQ(threads_for(15.5), 15);
}

}  // namespace
}  // namespace riffle
