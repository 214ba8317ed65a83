#include "riffle/stream/decoding.h"

#include <thread>

#include <gtest/gtest.h>

namespace riffle {
namespace {

int threads_of(const std::string& address) {
  Uri uri(address);
  return read_decoding(uri).threads;
}

TEST(Decoding, ThreadsAreOnePerCoreUnlessTheProgramOrTheAddressSaysOtherwise) {
  const auto cores = static_cast<int>(std::thread::hardware_concurrency());
  EXPECT_EQ(threads_of("folder:photos"), cores);
  set_decoding_threads(3);
  EXPECT_EQ(threads_of("folder:photos"), 3);
  EXPECT_EQ(threads_of("folder:photos?threads=5"), 5);
  set_decoding_threads(cores);
}

}  // namespace
}  // namespace riffle
