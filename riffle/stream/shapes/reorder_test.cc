#include "riffle/stream/shapes/reorder.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/base/error.h"
#include "riffle/base/log.h"
#include "riffle/base/text.h"
#include "riffle/stream/testing/generated_stream.h"

namespace riffle {
namespace {

using testing::HasSubstr;

class Reorder : public testing::Test {
 protected:
  void SetUp() override { set_log_level(LogLevel::quiet); }
  void TearDown() override { set_log_level(LogLevel::info); }
};

std::vector<Sample> all(const StreamFactory& source, const std::string& shapes) {
  return take(*open_shapes(source, shapes));
}

std::vector<std::string> part(const std::vector<std::string>& whole, std::size_t first,
                              std::size_t end) {
  return {whole.begin() + static_cast<std::ptrdiff_t>(first),
          whole.begin() + static_cast<std::ptrdiff_t>(end)};
}

TEST_F(Reorder, ShuffleGivesEverySampleOnceWindowByWindow) {
  const auto source = generated({.samples = 250, .clip_length = 10});
  const auto before = keys(take(*source()));
  const auto samples = all(source, "shuffle:window=100,seed=1");
  expect_numbered(samples);
  const auto after = keys(samples);
  ASSERT_EQ(after.size(), 250u);
  for (const auto& [first, end] : {std::pair{0, 100}, {100, 200}, {200, 250}}) {
    const auto old_part = part(before, first, end), new_part = part(after, first, end);
    EXPECT_EQ(sorted(new_part), sorted(old_part));
    EXPECT_NE(new_part, old_part);
  }
  // Pictures and clips travel with their samples.
  const auto whole = take(*source());
  for (const auto& sample : samples) {
    const auto& same = whole[static_cast<std::size_t>(parse_integer(sample.key.substr(5), "item"))];
    EXPECT_EQ(sample.picture, same.picture);
    EXPECT_EQ(sample.clip, same.clip);
  }
}

TEST_F(Reorder, TheOrderIsDrawnFromTheSeedAndTheWindow) {
  const auto source = generated({.samples = 100});
  EXPECT_EQ(keys(all(source, "shuffle:seed=1")), keys(all(source, "shuffle:seed=1")));
  EXPECT_NE(keys(all(source, "shuffle:seed=1")), keys(all(source, "shuffle:seed=2")));
  const auto epochs = keys(all(source, "loop:times=2,shuffle:window=100"));
  EXPECT_EQ(sorted(part(epochs, 0, 100)), sorted(part(epochs, 100, 200)));
  EXPECT_NE(part(epochs, 0, 100), part(epochs, 100, 200));
}

TEST_F(Reorder, MemoryChangesNothingButTheSpeed) {
  // A picture takes 324 bytes; a MiB holds about two thousand with their records.
  const auto source = generated({.samples = 6000, .clip_length = 10, .broken_every = 7});
  const auto held = open_shapes(source, "clips:length=9,decorrelate");
  const auto some = open_shapes(source, "clips:length=9,decorrelate:memory=1");
  const auto none = open_shapes(source, "clips:length=9,decorrelate:memory=0");
  while (true) {
    const auto a = held->next(), b = some->next(), c = none->next();
    ASSERT_EQ(a.has_value(), b.has_value());
    ASSERT_EQ(a.has_value(), c.has_value());
    if (!a) break;
    expect_same(*a, *b);
    expect_same(*a, *c);
  }
  EXPECT_EQ(held->skipped(), none->skipped());
  EXPECT_EQ(held->skipped(), some->skipped());
}

TEST_F(Reorder, WindowsBeyondMemoryAreReadOnceAndInOrder) {
  // Tells if it is asked to go anywhere.
  class Sequential : public GeneratedStream {
   public:
    Sequential() : GeneratedStream({.samples = 20000, .width = 2, .height = 2}) {}
    void seek(const std::string&) override { ADD_FAILURE() << "a seek"; }
  };
  int opened = 0;
  const auto source = [&] {
    ++opened;
    return std::make_unique<Sequential>();
  };
  const auto samples = all(source, "shuffle:window=20000,memory=0");
  EXPECT_EQ(opened, 1);
  EXPECT_EQ(sorted(keys(samples)), sorted(keys(take(*source()))));
  EXPECT_EQ(keys(samples), keys(all(source, "shuffle:window=20000")));
  // Where a sample comes says nothing about where it was.
  double product = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const auto item = static_cast<double>(parse_integer(samples[i].key.substr(5), "item"));
    product += (item - 10000) * (static_cast<double>(i) - 10000) / 20000 / 20000;
  }
  EXPECT_NEAR(product / 20000 * 12, 0, 0.05) << "correlation";
}

// Returns the number of temporary files that this process has open.
int spooled_files() {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const auto target = std::filesystem::read_symlink(entry, gone).string();
    count += target.find("riffle-spool-") != std::string::npos;
  }
  return count;
}

TEST_F(Reorder, PicturesThatKeepTheirFilesAreHeldWithinTheMemory) {
  // Tiny pictures from files of 4 KiB, as with original=1: without these a MiB holds them all.
  constexpr std::int64_t kSamples = 3000;
  class WithFiles : public GeneratedStream {
   public:
    WithFiles() : GeneratedStream({.samples = kSamples, .width = 2, .height = 2}) {}
    std::optional<Sample> next() override {
      auto sample = GeneratedStream::next();
      if (!sample) return sample;
      sample->picture.file = std::make_shared<const std::vector<std::byte>>(
          std::size_t{4} << 10, static_cast<std::byte>(sample->index));
      return sample;
    }
  };
  const auto source = [] { return std::make_unique<WithFiles>(); };
  const auto held = open_shapes(source, "shuffle:window=3000,memory=64");
  ASSERT_TRUE(held->next());
  EXPECT_EQ(spooled_files(), 0);
  const auto stream = open_shapes(source, "shuffle:window=3000,memory=1");
  std::vector<Sample> samples = take(*stream, 1);
  EXPECT_GT(spooled_files(), 0);  // of the second cell
  for (Sample& sample : take(*stream)) samples.push_back(std::move(sample));
  const auto expected = take(*open_shapes(source, "shuffle:window=3000"));
  ASSERT_EQ(samples.size(), static_cast<std::size_t>(kSamples));
  for (std::size_t i = 0; i < samples.size(); ++i) {
    EXPECT_EQ(samples[i].key, expected[i].key);
    ASSERT_TRUE(samples[i].picture.file);
    EXPECT_EQ(*samples[i].picture.file, *expected[i].picture.file);
  }
}

TEST_F(Reorder, ARefusalOfTheFolderForTemporaryFilesNamesNoOtherFolder) {
  const char* const named = std::getenv("TMPDIR");
  const auto before = named == nullptr ? std::nullopt : std::optional<std::string>(named);
  ::unsetenv("TMPDIR");
  ::setenv("TMP", "/not/there", 1);
  const auto stream = open_shapes(generated({.samples = 2000}), "shuffle:window=2000,memory=0");
  EXPECT_THAT([&] { stream->next(); },
              testing::ThrowsMessage<Error>(
                  AllOf(HasSubstr("name another in TMPDIR"), testing::Not(HasSubstr("/tmp")))));
  ::unsetenv("TMP");
  if (before) ::setenv("TMPDIR", before->c_str(), 1);
}

TEST_F(Reorder, DecorrelateKeepsNeighboursOfOneClipApart) {
  const auto source = generated({.samples = 600, .clip_length = 60});
  const auto before = keys(take(*source()));
  const auto samples = all(source, "decorrelate");
  EXPECT_EQ(sorted(keys(samples)), sorted(before));
  for (std::size_t i = 1; i < samples.size(); ++i) {
    ASSERT_NE(samples[i].clip, samples[i - 1].clip) << i;
  }
  int alike = 0;
  const auto shuffled = all(source, "shuffle");
  for (std::size_t i = 1; i < shuffled.size(); ++i) {
    alike += shuffled[i].clip == shuffled[i - 1].clip;
  }
  EXPECT_NEAR(alike, 59, 30);  // a tenth, by chance
}

TEST_F(Reorder, DecorrelateOfOneClipIsAShuffle) {
  EXPECT_EQ(all(generated({.samples = 50, .clip_length = 50}), "decorrelate").size(), 50u);
  EXPECT_EQ(all(generated({.samples = 50}), "decorrelate").size(), 50u);
  EXPECT_TRUE(all(generated({.samples = 0}), "decorrelate").empty());
}

TEST_F(Reorder, SaysThatItBreaksTheStreamingRule) {
  set_log_level(LogLevel::warnings);
  testing::internal::CaptureStderr();
  open_shapes(generated({}), "shuffle:window=77");
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("breaks the streaming rule"), HasSubstr("77")));
}

TEST_F(Reorder, AStopWhileTheWindowIsReadKeepsThePlace) {
  const auto stream = open_shapes(generated({.samples = 5, .waits = true}), "shuffle:window=10");
  const auto position = stream->position();
  auto waiting = std::async(std::launch::async, [&] { return stream->next().has_value(); });
  stream->stop();
  ASSERT_EQ(waiting.wait_for(std::chrono::seconds(30)), std::future_status::ready);
  EXPECT_FALSE(waiting.get());
  EXPECT_EQ(stream->position(), position);
}

}  // namespace
}  // namespace riffle
