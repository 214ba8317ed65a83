// Folders that are watched, through the stream that does so.
#include "riffle/stream/testing/watched_folder.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <optional>
#include <set>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/base/error.h"
#include "riffle/base/random.h"
#include "riffle/base/text.h"

namespace riffle {
namespace fs = std::filesystem;
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;

TEST_F(WatchedFolder, GivesWhatIsThereInOrderThenWhatArrives) {
  put(watched_ / "z/2.png");
  put(watched_ / "a/1.png");
  const auto stream = open();
  EXPECT_EQ(next(*stream), "a/1.png");
  EXPECT_EQ(next(*stream), "z/2.png");
  put(watched_ / "m.png", 7);
  const auto sample = stream->next();
  ASSERT_TRUE(sample);
  EXPECT_EQ(relative(*sample), "m.png");
  EXPECT_EQ(sample->picture.rgb.at(0), 7);
  EXPECT_EQ(sample->index, 2u);
  put(watched_ / "a/0.png");
  EXPECT_EQ(next(*stream), "a/0.png");
}

TEST_F(WatchedFolder, NextWaitsForAPictureInAFolderThatIsEmpty) {
  for (const std::string threads : {"threads=0", "threads=3"}) {
    const auto stream = open(threads);
    auto sample = std::async(std::launch::async, [&] { return stream->next(); });
    put(watched_ / (threads + ".png"));
    ASSERT_EQ(sample.wait_for(20s), std::future_status::ready);
    EXPECT_EQ(relative(*sample.get()), threads + ".png");
    fs::remove(watched_ / (threads + ".png"));
  }
}

TEST_F(WatchedFolder, StopEndsTheWaitForGood) {
  put(watched_ / "1.png");
  for (const std::string threads : {"threads=0", "threads=3"}) {
    const auto stream = open(threads);
    EXPECT_EQ(next(*stream), "1.png");
    auto sample = std::async(std::launch::async, [&] { return stream->next(); });
    stream->stop();
    ASSERT_EQ(sample.wait_for(20s), std::future_status::ready);
    EXPECT_FALSE(sample.get());
    const auto position = stream->position();
    put(watched_ / "2.png");
    EXPECT_FALSE(stream->next());
    EXPECT_EQ(stream->position(), position);
    stream->stop();
    fs::remove(watched_ / "2.png");
  }
}

TEST_F(WatchedFolder, AStoppedFolderEndsWithoutWatchToo) {
  put(watched_ / "1.png");
  const auto stream = open_stream("folder:" + encode_percent(watched_.string()));
  stream->stop();
  EXPECT_FALSE(stream->next());
}

TEST_F(WatchedFolder, FoldersThatAppearAreWatchedToo) {
  const auto stream = open("links=anywhere");
  put(watched_ / "new/er/1.png");
  EXPECT_EQ(next(*stream), "new/er/1.png");
  put(watched_ / "new/er/2.png");
  EXPECT_EQ(next(*stream), "new/er/2.png");
  put(watched_ / "new/3.png");
  EXPECT_EQ(next(*stream), "new/3.png");
  put(folder_ / "elsewhere/deep/4.png");
  fs::rename(folder_ / "elsewhere", watched_ / "moved");
  EXPECT_EQ(next(*stream), "moved/deep/4.png");
  put(watched_ / "moved/deep/5.png");
  EXPECT_EQ(next(*stream), "moved/deep/5.png");
  // Out again: what happens there is no longer ours.
  fs::rename(watched_ / "moved", folder_ / "elsewhere");
  put(folder_ / "elsewhere/deep/6.png");
  put(watched_ / "7.png");
  EXPECT_EQ(next(*stream), "7.png");
  put(folder_ / "linked/8.png");
  fs::create_directory_symlink(folder_ / "linked", watched_ / "link");
  EXPECT_EQ(next(*stream), "link/8.png");
}

TEST_F(WatchedFolder, OfAFolderThatIsMovedAwayNothingIsKept) {
  const auto stream = open();
  put(watched_ / "day-1/1.png");
  EXPECT_EQ(next(*stream), "day-1/1.png");
  put(watched_ / "day/deep/2.png");
  EXPECT_EQ(next(*stream), "day/deep/2.png");
  std::ofstream slow(watched_ / "day/deep/slow.png", std::ios::binary);
  put(watched_ / "3.png");
  EXPECT_EQ(next(*stream), "3.png");
  EXPECT_THAT(stream->position(), HasSubstr("day/deep/slow.png"));
  fs::rename(watched_ / "day", folder_ / "archive");
  put(watched_ / "4.png");
  EXPECT_EQ(next(*stream), "4.png");
  EXPECT_THAT(stream->position(), Not(HasSubstr("slow.png")));
  slow.close();
  // Its pictures are forgotten, so they are new; those of others are not.
  fs::remove(folder_ / "archive/deep/slow.png");
  fs::rename(folder_ / "archive", watched_ / "day");
  EXPECT_EQ(next(*stream), "day/deep/2.png");
  put(watched_ / "5.png");
  EXPECT_EQ(next(*stream), "5.png");
}

TEST_F(WatchedFolder, AFileCountsWhenItIsWholeNotBefore) {
  const auto stream = open("links=anywhere");
  const auto bytes = png(9);
  std::ofstream slow(watched_ / "slow.png", std::ios::binary);
  slow << bytes.substr(0, bytes.size() / 2) << std::flush;
  put(watched_ / "quick.png");
  EXPECT_EQ(next(*stream), "quick.png");
  slow << bytes.substr(bytes.size() / 2);
  slow.close();
  EXPECT_EQ(next(*stream), "slow.png");
  put(watched_ / "a.part");
  put(watched_ / ".b.png");
  fs::rename(watched_ / "a.part", watched_ / "a.png");
  EXPECT_EQ(next(*stream), "a.png");
  fs::rename(watched_ / ".b.png", watched_ / "b.png");
  EXPECT_EQ(next(*stream), "b.png");
  put(folder_ / "c.png");
  fs::create_hard_link(folder_ / "c.png", watched_ / "hard.png");
  EXPECT_EQ(next(*stream), "hard.png");
  fs::create_symlink(folder_ / "c.png", watched_ / "soft.png");
  EXPECT_EQ(next(*stream), "soft.png");
  EXPECT_THAT(stream->skipped(), IsEmpty());
}

TEST_F(WatchedFolder, LinksThatLeadOutAreSkipped) {
  put(folder_ / "secret/1.png");
  fs::create_symlink(folder_ / "secret/1.png", watched_ / "file-before.png");
  fs::create_directory_symlink("../secret", watched_ / "folder-before");
  const auto stream = open();
  fs::create_symlink(folder_ / "secret/1.png", watched_ / "file-after.png");
  fs::create_directory_symlink("../secret", watched_ / "folder-after");
  put(watched_ / "new/2.png");
  EXPECT_EQ(next(*stream), "new/2.png");
  put(folder_ / "secret/3.png");
  put(watched_ / "new/4.png");
  EXPECT_EQ(next(*stream), "new/4.png");
  EXPECT_EQ(stream->skipped().at("leads out"), 2);
}

TEST_F(WatchedFolder, OneThatIsWrittenAgainCountsAgain) {
  put(watched_ / "latest.png", 1);
  const auto stream = open();
  EXPECT_EQ(stream->next()->picture.rgb.at(0), 1);
  for (int level = 2; level < 5; ++level) {
    put(watched_ / "latest.png", level);
    const auto sample = stream->next();
    ASSERT_TRUE(sample);
    EXPECT_EQ(sample->picture.rgb.at(0), level);
  }
}

// The kernel tells of a close before the file counts as closed. Here a second writer, who came by
// another name that is gone, closes without a notice.
TEST_F(WatchedFolder, OneThatIsStillOpenWhenItsCloseIsNoticedIsCheckedAgain) {
  const auto stream = open("threads=0");
  put(folder_ / "elsewhere.png");
  std::optional<std::fstream> writer(std::in_place, folder_ / "elsewhere.png");
  fs::create_hard_link(folder_ / "elsewhere.png", watched_ / "1.png");
  fs::remove(folder_ / "elsewhere.png");
  std::fstream(watched_ / "1.png").close();
  const auto closes = std::async(std::launch::async, [&] {
    std::this_thread::sleep_for(100ms);
    writer.reset();
  });
  EXPECT_EQ(next(*stream), "1.png");
}

TEST_F(WatchedFolder, WhatCannotBeDecodedIsSkippedAndCountedAndTheWaitContinues) {
  std::ofstream(watched_ / "1.png") << "no picture";
  const auto stream = open();
  std::ofstream(watched_ / "2.png") << "no picture";
  put(watched_ / "3.png");
  EXPECT_EQ(next(*stream), "3.png");
  EXPECT_THAT(stream->skipped(), ElementsAre(Pair("not a picture", 2)));
}

TEST_F(WatchedFolder, LostNoticesAreMadeUpForByReadingAllAgain) {
  std::ifstream limit("/proc/sys/fs/inotify/max_queued_events");
  int most = 0;
  if (!(limit >> most) || most > 100'000) GTEST_SKIP() << "the kernel's queue cannot be filled";
  put(watched_ / "1.png");
  put(watched_ / "x.txt");
  const auto stream = open("threads=0");  // looks at no notice before it is asked for more
  for (int i = 0; i < most / 4 + 100; ++i) {
    fs::rename(watched_ / "x.txt", watched_ / "y.txt");
    fs::rename(watched_ / "y.txt", watched_ / "x.txt");
  }
  put(watched_ / "2.png");
  put(watched_ / "new/3.png");
  EXPECT_EQ(next(*stream), "1.png");
  EXPECT_EQ(next(*stream), "2.png");
  EXPECT_EQ(next(*stream), "new/3.png");
  put(watched_ / "new/4.png");
  EXPECT_EQ(next(*stream), "new/4.png");
}

TEST_F(WatchedFolder, SeekContinuesAsIfNothingHadHappened) {
  for (const std::string order : {"order=name", "order=time", "order=shuffle&seed=3"}) {
    fs::remove_all(watched_);
    for (int i = 0; i < 20; ++i) put(watched_ / cat("c", i % 3, "/", i * 7919 % 100, ".png"), i);
    const auto first = open(order + "&threads=2");
    std::vector<std::string> positions = {first->position()}, keys;
    const auto read = [&](int count) {
      for (int i = 0; i < count; ++i) {
        const auto sample = first->next();
        ASSERT_TRUE(sample);
        keys.push_back(sample->key);
        positions.push_back(first->position());
      }
    };
    read(12);
    // Some arrive while others still wait, all together, and in no order of their names.
    for (int i = 20; i < 35; ++i) put(watched_ / cat("c", i % 4, "/", i * 7919 % 100, ".png"), i);
    read(23);
    for (int i = 35; i < 40; ++i) put(watched_ / cat(i * 7919 % 100, ".png"), i);
    read(5);
    EXPECT_EQ(std::set<std::string>(keys.begin(), keys.end()).size(), 40u);
    for (std::uint64_t round = 0; round < 8; ++round) {
      Random random(9, Purpose("seek"), round);
      const auto begin = random.below(positions.size());
      const auto second = open(cat(order, "&threads=", round % 3));
      for (auto left = random.below(5); left > 0; --left) second->next();
      second->seek(positions[begin]);
      EXPECT_EQ(second->position(), positions[begin]);
      for (auto i = begin; i < keys.size(); ++i) {
        const auto sample = second->next();
        ASSERT_TRUE(sample);
        ASSERT_EQ(sample->key, keys[i]);
        ASSERT_EQ(sample->index, i);
        ASSERT_EQ(second->position(), positions[i + 1]);
      }
    }
  }
}

TEST_F(WatchedFolder, WhatArrivedWhileNobodyWatchedComesAfterWhatWasThere) {
  put(watched_ / "b.png");
  put(watched_ / "d.png");
  auto stream = open();
  EXPECT_EQ(next(*stream), "b.png");
  const auto position = stream->position();
  stream.reset();
  put(watched_ / "c.png");
  put(folder_ / "a.png");
  fs::rename(folder_ / "a.png", watched_ / "a.png");
  stream = open();
  stream->seek(position);
  EXPECT_EQ(next(*stream), "d.png");
  const std::set<std::string> rest = {next(*stream), next(*stream)};
  EXPECT_THAT(rest, ElementsAre("a.png", "c.png"));
}

TEST_F(WatchedFolder, PositionsOfAFolderThatIsNotWatchedAreRefused) {
  put(watched_ / "1.png");
  const auto watched = open();
  const auto still = open_stream("folder:" + encode_percent(watched_.string()));
  EXPECT_THROW(watched->seek(still->position()), Error);
  EXPECT_THROW(still->seek(watched->position()), Error);
  for (const auto* bad : {"name 0 watch", "name 0 watch x", "name 0 watch 1 2 3", "name 0 1 2"}) {
    EXPECT_THROW(watched->seek(bad), Error) << bad;
  }
}

}  // namespace
}  // namespace riffle
