// A folder that goes away while it is read or watched.

#include <filesystem>
#include <future>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/stream/testing/watched_folder.h"

namespace riffle {
namespace fs = std::filesystem;
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

using VanishingFolder = WatchedFolder;

TEST_F(VanishingFolder, IsAnErrorNotAnEndAndContinuesWhenItIsBack) {
  for (int i = 0; i < 6; ++i) put(watched_ / cat(i, ".png"));
  const std::string uri = cat("folder:", encode_percent(watched_.string()), "?threads=0");
  const auto stream = open_stream(uri);
  EXPECT_EQ(next(*stream), "0.png");
  const auto position = stream->position();
  fs::rename(watched_, folder_ / "away");
  EXPECT_THAT([&] { stream->next(); },
              ThrowsMessage<Error>(HasSubstr(watched_.string() + " is gone or empty")));
  EXPECT_EQ(stream->position(), position);
  fs::create_directory(watched_);  // as the mount point of a disk
  EXPECT_THROW(stream->next(), Error);
  fs::remove(watched_);
  fs::rename(folder_ / "away", watched_);
  const auto again = open_stream(uri);
  again->seek(position);
  EXPECT_EQ(next(*again), "1.png");
}

TEST_F(VanishingFolder, WithOtherPicturesLeftAMissingOneIsSkipped) {
  for (int i = 0; i < 3; ++i) put(watched_ / cat(i, ".png"));
  const auto stream = open_stream(cat("folder:", encode_percent(watched_.string()), "?threads=0"));
  fs::remove(watched_ / "0.png");
  EXPECT_EQ(next(*stream), "1.png");
  EXPECT_EQ(stream->skipped().at("unreadable"), 1);
}

TEST_F(VanishingFolder, EndsTheWaitForItsPicturesWithAnError) {
  for (const bool removed : {false, true}) {
    put(watched_ / "1.png");
    const auto stream = open();
    EXPECT_EQ(next(*stream), "1.png");
    auto sample = std::async(std::launch::async, [&] { return stream->next(); });
    if (removed) {
      fs::remove_all(watched_);
    } else {
      fs::rename(watched_, folder_ / "away");
    }
    if (sample.wait_for(std::chrono::seconds(20)) != std::future_status::ready) stream->stop();
    EXPECT_THAT([&] { sample.get(); }, ThrowsMessage<Error>(HasSubstr("is gone"))) << removed;
  }
}

TEST_F(VanishingFolder, AFolderBelowMayGo) {
  put(watched_ / "below/1.png");
  const auto stream = open();
  EXPECT_EQ(next(*stream), "below/1.png");
  fs::rename(watched_ / "below", folder_ / "away");
  put(watched_ / "2.png");
  EXPECT_EQ(next(*stream), "2.png");
}

}  // namespace
}  // namespace riffle
