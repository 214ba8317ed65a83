#include "riffle/base/file.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/base/error.h"

namespace riffle {
namespace {

namespace fs = std::filesystem;

class FileTest : public testing::Test {
 protected:
  FileTest() {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~FileTest() override { fs::remove_all(folder_); }

  fs::path folder_ =
      fs::path(testing::TempDir()) /
      ("riffle_file_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
};

TEST_F(FileTest, WhatIsWrittenIsRead) {
  write_atomically(folder_ / "new" / "file", "hello\0world");
  EXPECT_EQ(read_text(folder_ / "new" / "file"), "hello");
  EXPECT_EQ(read_bytes(folder_ / "new" / "file").size(), 5u);
}

TEST_F(FileTest, ReplacingLeavesNoTemporaryFile) {
  write_atomically(folder_ / "file", "one");
  write_atomically(folder_ / "file", "two");
  EXPECT_EQ(read_text(folder_ / "file"), "two");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

TEST_F(FileTest, AFailedWriteKeepsTheOldFileAndSaysWhere) {
  fs::create_directories(folder_ / "taken" / "inside");
  try {
    write_atomically(folder_ / "taken", "text");
    FAIL() << "a folder cannot be replaced by a file";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::failure);
    EXPECT_THAT(error.what(), testing::HasSubstr("taken"));
  }
  EXPECT_TRUE(fs::is_directory(folder_ / "taken" / "inside"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

TEST_F(FileTest, MissingFilesAndFoldersAreNamed) {
  EXPECT_THROW(read_text(folder_ / "absent"), Error);
  EXPECT_THROW(read_bytes(folder_), Error);
}

}  // namespace
}  // namespace riffle
