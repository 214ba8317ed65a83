// Pictures in a watched folder that somebody is still writing.
#include "riffle/stream/folder/unfinished_file.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/stream/testing/watched_folder.h"

namespace riffle {
namespace fs = std::filesystem;
namespace {

using testing::IsEmpty;

class UnfinishedFile : public WatchedFolder {
 protected:
  // A picture of which the second half is still to come.
  std::ofstream begin(const fs::path& path) const {
    fs::create_directories(path.parent_path());
    std::ofstream out(path, std::ios::binary);
    const auto bytes = png(9);
    out << bytes.substr(0, bytes.size() / 2) << std::flush;
    return out;
  }
  static void finish(std::ofstream& out) {
    const auto bytes = png(9);
    out << bytes.substr(bytes.size() / 2);
    out.close();
  }
  // A picture with all its bytes that is not closed.
  static std::ofstream keep_open(const fs::path& path) {
    std::ofstream out(path, std::ios::binary);
    out << png(9) << std::flush;
    return out;
  }
};

TEST_F(UnfinishedFile, IsOneThatSomebodyHasOpenForWriting) {
  put(watched_ / "a.png");
  EXPECT_FALSE(is_unfinished(watched_ / "a.png"));
  std::ifstream reader(watched_ / "a.png");
  EXPECT_FALSE(is_unfinished(watched_ / "a.png"));
  std::ofstream writer(watched_ / "a.png", std::ios::app);
  EXPECT_TRUE(is_unfinished(watched_ / "a.png"));
  writer.close();
  EXPECT_FALSE(is_unfinished(watched_ / "a.png"));
  EXPECT_FALSE(is_unfinished(watched_ / "none.png"));
}

TEST_F(UnfinishedFile, WaitsUntilItIsClosedHoweverItIsFound) {
  auto there = begin(watched_ / "there.png");
  put(watched_ / "before.png");
  const auto stream = open("threads=2");
  EXPECT_EQ(next(*stream), "before.png");
  auto moved = begin(folder_ / "moved.png");
  fs::rename(folder_ / "moved.png", watched_ / "moved.png");
  auto inside = begin(folder_ / "folder/inside.png");
  fs::rename(folder_ / "folder", watched_ / "folder");
  auto below = begin(watched_ / "new/folder/below.png");
  put(watched_ / "whole.png");
  EXPECT_EQ(next(*stream), "whole.png");
  finish(below);
  EXPECT_EQ(next(*stream), "new/folder/below.png");
  finish(moved);
  EXPECT_EQ(next(*stream), "moved.png");
  finish(there);
  EXPECT_EQ(next(*stream), "there.png");
  finish(inside);
  EXPECT_EQ(next(*stream), "folder/inside.png");
  EXPECT_THAT(stream->skipped(), IsEmpty());
}

TEST_F(UnfinishedFile, ClosedLateItComesOnceAlsoAcrossARestart) {
  for (const bool closed_before_restart : {true, false}) {
    for (const bool there_at_first : {true, false}) {
      fs::remove_all(watched_);
      fs::create_directory(watched_);
      std::ofstream late;
      if (there_at_first) late = keep_open(watched_ / "late.png");
      put(watched_ / "there.png");
      auto stream = open();
      EXPECT_EQ(next(*stream), "there.png");
      if (!there_at_first) late = keep_open(watched_ / "late.png");
      // Later than the last byte of the one that is late.
      put(watched_ / "1.png");
      EXPECT_EQ(next(*stream), "1.png");
      auto position = stream->position();
      const auto restart = [&] {
        stream.reset();
        stream = open();
        stream->seek(position);
        EXPECT_EQ(stream->position(), position);
      };
      if (closed_before_restart) late.close();
      restart();
      put(watched_ / "2.png");
      if (!closed_before_restart) {
        EXPECT_EQ(next(*stream), "2.png");
        position = stream->position();
        restart();
        late.close();
        EXPECT_EQ(next(*stream), "late.png");
      } else {
        EXPECT_EQ(next(*stream), "late.png");
        EXPECT_EQ(next(*stream), "2.png");
      }
      position = stream->position();
      restart();
      put(watched_ / "3.png");
      EXPECT_EQ(next(*stream), "3.png");
      EXPECT_THAT(stream->skipped(), IsEmpty());
    }
  }
}

TEST_F(UnfinishedFile, OneThatWasOpenedButNotChangedDoesNotComeAgain) {
  const auto stream = open();
  put(watched_ / "1.png");
  EXPECT_EQ(next(*stream), "1.png");
  std::ofstream first(watched_ / "1.png", std::ios::app), second(watched_ / "1.png", std::ios::app);
  first.close();
  put(watched_ / "2.png");
  EXPECT_EQ(next(*stream), "2.png");
  second.close();
  put(watched_ / "3.png");
  EXPECT_EQ(next(*stream), "3.png");
}

}  // namespace
}  // namespace riffle
