#include "riffle/base/median.h"

#include <stdexcept>

#include <gtest/gtest.h>

namespace riffle {
namespace {

TEST(Median, IsTheMiddleOrTheMeanOfTheMiddleTwo) {
  EXPECT_EQ(median({5}), 5);
  EXPECT_EQ(median({9, 1, 2}), 2);
  EXPECT_EQ(median({9, 1, 2, 4}), 3);
  EXPECT_THROW(median({}), std::logic_error);
}

}  // namespace
}  // namespace riffle
