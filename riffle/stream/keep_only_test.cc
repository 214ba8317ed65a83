// What the sources give when only some samples are wanted (Stream::keep_only()).
#include <functional>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/base/text.h"
#include "riffle/stream/testing/recording.h"
#include "riffle/stream/testing/shards_folder.h"

namespace riffle {
namespace {

using testing::IsEmpty;

bool is_wanted(const Sample& sample) {
  EXPECT_TRUE(sample.picture.rgb.empty());
  return sample.label == "cat" || sample.label.starts_with("stripes");
}

class KeepOnly : public ShardsFolder, public testing::WithParamInterface<std::string> {
 protected:
  // Cats and dogs by turns; of each, the last picture is broken.
  void SetUp() override {
    GeneratedTar first, second;
    for (int i = 0; i < 40; ++i) {
      const std::string name = cat(i % 2 == 0 ? "cat/" : "dog/", 100 + i, ".png");
      const auto bytes = i < 38 ? solid_png(i) : std::vector<std::byte>(64);
      (i < 25 ? first : second).add(name, bytes);
      put_bytes(cat("pictures/", name), bytes);
    }
    put("1.tar", first);
    put("2.tar", second);
  }

  std::unique_ptr<Stream> open_source() {
    if (GetParam() == "shards") return open("threads=3", "*.tar");
    if (GetParam() == "folder") {
      return open_stream(cat("folder:", (folder_ / "pictures").string(), "?order=name&threads=3"));
    }
    return open_stream("synthetic:?frames=4&size=8&samples=400&seed=3");
  }

  std::unique_ptr<Stream> open_wanted() {
    auto stream = open_source();
    EXPECT_TRUE(stream->keep_only(is_wanted));
    return stream;
  }
};

TEST_P(KeepOnly, GivesTheWantedSamplesAsTheWholeStreamDoes) {
  const auto whole = open_source();
  std::vector<Sample> expected;
  while (auto sample = whole->next()) {
    if (sample->label != "cat" && !sample->label.starts_with("stripes")) continue;
    expected.push_back(std::move(*sample));
  }
  ASSERT_GE(expected.size(), 4u);
  const auto wanted = open_wanted();
  for (const auto& sample : expected) {
    const auto given = wanted->next();
    ASSERT_TRUE(given);
    EXPECT_EQ(given->key, sample.key);
    EXPECT_EQ(given->label, sample.label);
    EXPECT_EQ(given->clip, sample.clip);
    EXPECT_TRUE(given->picture == sample.picture) << sample.key;
  }
  EXPECT_FALSE(wanted->next());
}

TEST_P(KeepOnly, ContinuesFromAnyPosition) {
  const auto recording = record(*open_wanted());
  for (std::size_t at = 0; at < recording.positions.size(); ++at) {
    expect_continues(*open_wanted(), recording, at);
  }
}

using KeepOnlyOfFiles = KeepOnly;

TEST_P(KeepOnlyOfFiles, DoesNotDecodeTheOthers) {
  const auto stream = open_wanted();
  while (stream->next()) {
  }
  ASSERT_EQ(stream->skipped().size(), 1u);
  EXPECT_EQ(stream->skipped().begin()->second, 1) << "the broken dog was decoded";
}

TEST_P(KeepOnly, NothingThatIsWantedIsAnEnd) {
  const auto stream = open_source();
  ASSERT_TRUE(stream->keep_only([](const Sample&) { return false; }));
  EXPECT_FALSE(stream->next());
  EXPECT_THAT(stream->skipped(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Sources, KeepOnly, testing::Values("shards", "folder", "synthetic"),
                         [](const auto& source) { return source.param; });
INSTANTIATE_TEST_SUITE_P(Sources, KeepOnlyOfFiles, testing::Values("shards", "folder"),
                         [](const auto& source) { return source.param; });

}  // namespace
}  // namespace riffle
