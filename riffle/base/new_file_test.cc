#include "riffle/base/new_file.h"

#include <gtest/gtest.h>

#include "riffle/base/error.h"

namespace riffle {
namespace {

namespace fs = std::filesystem;

class NewFileTest : public testing::Test {
 protected:
  NewFileTest() { fs::remove_all(folder_); }
  ~NewFileTest() override { fs::remove_all(folder_); }

  fs::path folder_ = fs::path(testing::TempDir()) /
                     (std::string("riffle_new_file_") +
                      testing::UnitTest::GetInstance()->current_test_info()->name());
};

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

TEST_F(NewFileTest, RefusesAFolder) {
  fs::create_directories(folder_);
  EXPECT_THROW(NewFile{folder_}, Error);
}

}  // namespace
}  // namespace riffle
