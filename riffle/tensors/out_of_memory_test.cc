#include "riffle/tensors/out_of_memory.h"

#include <new>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace riffle {
namespace {

TEST(OutOfMemory, IsToldFromOtherFailures) {
  EXPECT_TRUE(is_out_of_memory(std::bad_alloc()));
  const auto thrown = [](const auto& fails) {
    try {
      fails();
    } catch (const std::exception& error) {
      return is_out_of_memory(error);
    }
    ADD_FAILURE() << "nothing was thrown";
    return false;
  };
  EXPECT_TRUE(thrown([] { at::empty({std::int64_t{1} << 60}, at::kByte); }));
  EXPECT_FALSE(thrown([] { at::zeros({2}).add(at::zeros({3})); }));
}

}  // namespace
}  // namespace riffle
