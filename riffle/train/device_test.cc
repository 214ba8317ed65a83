#include "riffle/train/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/base/error.h"

namespace riffle {
namespace {

TEST(Device, AGpuOfAListIsTheOneAtItsPlace) {
  EXPECT_EQ(visible_gpu("", 1), "1");
  EXPECT_EQ(visible_gpu("2,5", 0), "2");
  EXPECT_EQ(visible_gpu("2,5", 1), "5");
  EXPECT_EQ(visible_gpu("GPU-12ab,GPU-34cd", 1), "GPU-34cd");
  EXPECT_THROW(visible_gpu("2,5", 2), Error);
}

TEST(Device, NamesThatAreUnknownAreRefused) {
  EXPECT_TRUE(open_device("cpu").is_cpu());
  for (const char* name : {"", "cpus", "cuda:", "cuda:x", "cuda:-1", "gpu:1"}) {
    EXPECT_THROW(open_device(name), Error) << name;
  }
}

TEST(Device, ThatIsARanksOwnIsTheFirstOfAProcessAlone) {
  try {
    EXPECT_TRUE(open_device("cuda:{local_rank}").is_cuda());
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("device cuda:0: "));
  }
}

}  // namespace
}  // namespace riffle
