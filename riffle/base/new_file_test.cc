#include "riffle/base/new_file.h"

#include <gtest/gtest.h>

#include "riffle/base/error.h"
#include "riffle/base/testing/temp_folder.h"

namespace riffle {
namespace {

namespace fs = std::filesystem;

class NewFileTest : public TempFolder {};

TEST_F(NewFileTest, AppearsWhenItIsWholeWithItsBeginningWrittenLast) {
  const fs::path path = folder_ / "deep" / "file.bin";
  NewFile file(path);
  file.append("????");
  file.append("rows");
  EXPECT_FALSE(fs::exists(path));
  file.overwrite_beginning("head");
  file.commit();
  EXPECT_EQ(read_text(path), "headrows");
  EXPECT_EQ(std::distance(fs::directory_iterator(path.parent_path()), {}), 1);
}

TEST_F(NewFileTest, LeavesTheOldFileAndNothingElseWithoutACommit) {
  const fs::path path = folder_ / "file.bin";
  write_atomically(path, "old");
  {
    NewFile file(path);
    file.append("half of the new");
  }
  EXPECT_EQ(read_text(path), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
}

TEST_F(NewFileTest, NeverWritesThroughALinkThatWasPutInItsWay) {
  write_atomically(folder_ / "precious", "old");
  const fs::path path = folder_ / "file.bin";
  fs::create_symlink(folder_ / "precious", temporary_path(path));
  write_atomically(path, "new");
  EXPECT_EQ(read_text(path), "new");
  EXPECT_FALSE(fs::is_symlink(path));
  EXPECT_EQ(read_text(folder_ / "precious"), "old");
}

TEST_F(NewFileTest, RefusesAFolder) { EXPECT_THROW(NewFile{folder_}, Error); }

}  // namespace
}  // namespace riffle
