#include "riffle/base/file.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "riffle/base/error.h"
#include "riffle/base/file_faults.h"
#include "riffle/base/file_lock.h"
#include "riffle/base/testing/temp_folder.h"

namespace riffle {
namespace {

namespace fs = std::filesystem;

class FileTest : public TempFolder {};

const auto kRefused =
    testing::ThrowsMessage<Error>(testing::HasSubstr("riffle does not write through it"));

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
    EXPECT_EQ(error.kind(), ErrorKind::bad_input);
    EXPECT_THAT(error.what(), testing::HasSubstr("taken is a folder"));
  }
  EXPECT_TRUE(fs::is_directory(folder_ / "taken" / "inside"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

TEST_F(FileTest, WhateverStepFailsTheOldFileStays) {
  write_atomically(folder_ / "file", "old");
  for (const FileStep failing :
       {FileStep::open, FileStep::write, FileStep::sync, FileStep::rename}) {
    const FileFaults faults([failing](FileStep step, const fs::path&) {
      return FileFault{step == failing ? ENOSPC : 0};
    });
    try {
      write_atomically(folder_ / "file", "new");
      ADD_FAILURE() << "step " << static_cast<int>(failing);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::failure);
      EXPECT_THAT(error.what(), testing::HasSubstr("No space left on device"));
    }
  }
  EXPECT_EQ(read_text(folder_ / "file"), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

TEST_F(FileTest, ShortReadsAndWritesAreContinued) {
  const FileFaults faults([](FileStep, const fs::path&) { return FileFault{0, 3}; });
  write_atomically(folder_ / "file", "hello world");
  EXPECT_EQ(read_text(folder_ / "file"), "hello world");
  EXPECT_EQ(read_bytes(folder_ / "file").size(), 11u);
}

TEST_F(FileTest, ReadErrorsAreErrors) {
  write_atomically(folder_ / "file", "hello");
  const FileFaults faults(
      [](FileStep step, const fs::path&) { return FileFault{step == FileStep::read ? EIO : 0}; });
  EXPECT_THROW(read_text(folder_ / "file"), Error);
  EXPECT_THROW(read_bytes(folder_ / "file"), Error);
}

TEST_F(FileTest, AnAppendThatFailsHalfWayLeavesNothingBehind) {
  AppendFile file(folder_ / "log");
  file.append("one\n");
  {
    int writes = 0;
    const FileFaults faults([&](FileStep step, const fs::path&) {
      return FileFault{step == FileStep::write && ++writes > 1 ? ENOSPC : 0, 2};
    });
    EXPECT_THROW(file.append("two\n"), Error);
    EXPECT_GT(writes, 1);
  }
  EXPECT_EQ(read_text(folder_ / "log"), "one\n");
  file.append("three\n");
  file.sync();
  EXPECT_EQ(read_text(folder_ / "log"), "one\nthree\n");
  EXPECT_EQ(AppendFile(folder_ / "log").size(), 10u);
}

TEST_F(FileTest, PartsOfAFileAreReadAndItsEndIsNotPassed) {
  write_atomically(folder_ / "file", "0123456789");
  const InputFile file(folder_ / "file");
  std::array<std::byte, 3> part;
  file.read(4, part);
  EXPECT_EQ(static_cast<char>(part[0]), '4');
  EXPECT_THROW(file.read(8, part), Error);
}

TEST_F(FileTest, WhatAKilledWriterLeftIsRemoved) {
  write_atomically(folder_ / "file", "x");
  write_atomically(folder_ / ".file.tmp-123", "half");
  remove_temporary_files(folder_);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

TEST_F(FileTest, AFolderThatCannotBeListedIsNotAnEmptyOne) {
  write_atomically(folder_ / "a", "text");
  EXPECT_THAT(list_folder(folder_), testing::ElementsAre(folder_ / "a"));
  EXPECT_TRUE(list_folder(folder_ / "none").empty());
  const FileFaults faults(
      [](FileStep step, const fs::path&) { return FileFault{step == FileStep::list ? EIO : 0}; });
  EXPECT_THAT([&] { list_folder(folder_); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("cannot list")));
}

TEST_F(FileTest, AFolderMayBeMadeByManyAtOnce) {
  // Whoever is behind finds them made, is faster and catches up.
  const auto make_all = [&] {
    for (int i = 0; i < 10000; ++i) {
      EXPECT_NO_THROW(make_folders(folder_ / std::to_string(i)));
    }
  };
  auto other = std::async(std::launch::async, make_all);
  make_all();
  other.get();
  write_atomically(folder_ / "file", "text");
  EXPECT_THAT([&] { make_folders(folder_ / "file"); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("is a file, not a folder")));
}

TEST_F(FileTest, ALockIsHeldOnceAndEndsWithItsHolder) {
  {
    const FileLock lock(folder_ / "lock", "the run");
    try {
      FileLock(folder_ / "lock", "the run");
      FAIL() << "should have thrown";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(),
                  testing::HasSubstr("the run is in use by process " + std::to_string(::getpid())));
    }
  }
  const FileLock again(folder_ / "lock", "the run");
}

TEST_F(FileTest, ALockIsNotTakenThroughALink) {
  const fs::path victim = folder_ / "victim";
  write_atomically(victim, "precious");
  fs::create_symlink(victim, folder_ / "lock");
  fs::create_symlink(folder_ / "absent", folder_ / "dangling");
  for (const char* link : {"lock", "dangling"}) {
    EXPECT_THAT([&] { FileLock(folder_ / link, "the run"); }, kRefused);
  }
  EXPECT_EQ(read_text(victim), "precious");
  EXPECT_FALSE(fs::exists(folder_ / "absent"));
}

TEST_F(FileTest, ALockThatWasReplacedByALinkToItIsLost) {
  const FileLock lock(folder_ / "lock", "the run");
  fs::rename(folder_ / "lock", folder_ / "away");
  fs::create_symlink("away", folder_ / "lock");
  EXPECT_THROW(lock.require_in_place(), LostLock);
}

TEST_F(FileTest, ALockIsWaitedForWhereThatIsAsked) {
  auto lock = std::make_unique<FileLock>(folder_ / "lock", "the run");
  auto waiting = std::async(std::launch::async, [this] {
    return std::make_unique<FileLock>(folder_ / "lock", "the run", IfTaken::wait);
  });
  lock.reset();
  const auto got = waiting.get();
  EXPECT_THROW(FileLock(folder_ / "lock", "the run"), Error);
}

TEST_F(FileTest, ALockKnowsWhetherItsFileIsStillThere) {
  const fs::path run = folder_ / "run", away = folder_ / "away";
  const auto taken = [&] {
    make_folders(run);
    return FileLock(run / "lock", "the run");
  };
  const auto lost = testing::ThrowsMessage<LostLock>(testing::HasSubstr("the run was moved"));

  const auto first = taken();
  first.require_in_place();
  fs::rename(run, away);
  EXPECT_THAT([&] { first.require_in_place(); }, lost);
  const auto second = taken();
  EXPECT_THAT([&] { first.require_in_place(); }, lost);
  second.require_in_place();
  fs::remove(run / "lock");
  EXPECT_THAT([&] { second.require_in_place(); }, lost);
  fs::remove_all(run);
  fs::rename(away, run);
  first.require_in_place();
}

TEST_F(FileTest, NothingIsAppendedOrCutThroughALink) {
  const fs::path victim = folder_ / "victim", link = folder_ / "link";
  write_atomically(victim, "precious");
  fs::create_symlink(victim, link);
  EXPECT_THAT([&] { AppendFile(link).cut(0); }, kRefused);
  EXPECT_EQ(read_text(victim), "precious");
}

TEST_F(FileTest, AFileIsCutButNeverLengthened) {
  AppendFile file(folder_ / "a");
  file.append("text");
  EXPECT_THROW(file.cut(5), Error);
  file.cut(2);
  file.append("rn");
  EXPECT_EQ(read_text(folder_ / "a"), "tern");
}

TEST_F(FileTest, APipeIsNotWaitedForWhereAFileShouldBe) {
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0644), 0);
  const auto refused =
      testing::ThrowsMessage<Error>(testing::HasSubstr("pipe is not a regular file"));
  EXPECT_THAT([&] { read_text(pipe); }, refused);
  EXPECT_THAT([&] { read_bytes(pipe); }, refused);
  EXPECT_THAT([&] { InputFile{pipe}; }, refused);
  EXPECT_THAT([&] { AppendFile{pipe}; }, kRefused);
  EXPECT_THAT([&] { FileLock(pipe, "the run"); }, kRefused);
}

TEST_F(FileTest, AFileThatAServerHasALeaseOnIsWaitedFor) {
  write_atomically(folder_ / "a", "text");
  const Descriptor server(folder_ / "a", O_RDWR);
  ::fcntl(server.number(), F_SETSIG, SIGURG);  // not the default one, which ends the program
  if (::fcntl(server.number(), F_SETLEASE, F_WRLCK) != 0) GTEST_SKIP() << "no leases here";
  auto read = std::async(std::launch::async, [&] { return read_text(folder_ / "a"); });
  while (::fcntl(server.number(), F_GETLEASE) == F_WRLCK) std::this_thread::yield();
  ::fcntl(server.number(), F_SETLEASE, F_UNLCK);
  EXPECT_EQ(read.get(), "text");
}

TEST_F(FileTest, AFileThatTheUserNamesMayBeAPipe) {
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0644), 0);
  auto read = std::async(std::launch::async, [&] { return read_given_text(pipe, 10); });
  Descriptor(pipe, O_WRONLY).write(std::as_bytes(std::span("text", 4)));
  EXPECT_EQ(read.get(), "text");
}

TEST_F(FileTest, ATextIsReadUpToALimit) {
  write_atomically(folder_ / "a", "text");
  EXPECT_EQ(read_text(folder_ / "a", 4), "text");
  EXPECT_THAT([&] { read_text(folder_ / "a", 3); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("more than 3 B")));
  EXPECT_THROW(read_given_text("/dev/zero", 1 << 20), Error) << "it has no end";
}

TEST_F(FileTest, MissingFilesAndFoldersAreNamed) {
  EXPECT_THROW(read_text(folder_ / "absent"), Error);
  EXPECT_THROW(read_bytes(folder_), Error);
}

}  // namespace
}  // namespace riffle
