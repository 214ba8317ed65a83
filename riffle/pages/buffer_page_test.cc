#include "riffle/pages/buffer_page.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/run/testing/runs.h"

namespace riffle {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using BufferPageTest = RunTest;

TEST_F(BufferPageTest, ManyLabelsAreBarsOfTheMostFrequent) {
  Config config = tiny("fifo");
  config.stream = "synthetic:?frames=1&size=16&classes=25";
  config.learner.buffer.capacity = "96";
  config.learner.train.max_updates = 2;
  train(config, folder_ / "run");
  SavedBuffer buffer(RunFolder::open(folder_ / "run"));
  const std::string page = buffer_page(buffer, "run", 5);
  EXPECT_THAT(page, AllOf(HasSubstr("What run kept"), HasSubstr("The 16 most frequent of ")));
  std::set<std::string> shown, hidden;
  for (const auto& sample : buffer.samples()) {
    (page.find('>' + sample.info.label + '<') != std::string::npos ? shown : hidden)
        .insert(sample.info.label);
  }
  EXPECT_EQ(shown.size(), 16u);
  EXPECT_FALSE(hidden.empty());
}

}  // namespace
}  // namespace riffle
