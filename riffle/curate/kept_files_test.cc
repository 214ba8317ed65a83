#include "riffle/curate/kept_files.h"

#include <cerrno>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/base/error.h"
#include "riffle/base/file.h"
#include "riffle/base/file_faults.h"
#include "riffle/curate/testing/folder_contents.h"
#include "riffle/stream/testing/picture_folder.h"

namespace riffle {
namespace {

namespace fs = std::filesystem;

class KeptFilesTest : public PictureFolder {
 protected:
  static Sample sample(std::uint64_t index) {
    Sample made;
    made.index = index;
    made.key = "photo.png";
    made.picture.file = std::make_shared<const std::vector<std::byte>>(solid_png(100));
    return made;
  }
  bool is_there(const std::string& file) const { return fs::exists(pictures_ / file); }

  const fs::path pictures_ = folder_ / "pictures";
};

TEST_F(KeptFilesTest, APictureThatLeavesBeforeTheNextStateHasNoFile) {
  KeptFiles files(pictures_);
  const std::string stays = files.add(sample(1));
  const std::string leaves = files.add(sample(2));
  files.leave(leaves);
  bool written_before_the_state = false;
  files.save([&] { written_before_the_state = is_there(stays) && !is_there(leaves); });
  files.finish();
  EXPECT_TRUE(written_before_the_state);
  EXPECT_EQ(folder_contents(pictures_).size(), 1u);
  EXPECT_EQ(read_bytes(pictures_ / stays), *sample(1).picture.file);
}

TEST_F(KeptFilesTest, AFileStaysUntilAStateIsWrittenThatDoesNotSpeakOfIt) {
  KeptFiles files(pictures_);
  const std::string file = files.add(sample(1));
  files.save([] {});
  files.leave(file);
  bool there = false;
  files.save([&] { there = is_there(file); });
  files.finish();
  EXPECT_TRUE(there);
  EXPECT_FALSE(is_there(file));
}

TEST_F(KeptFilesTest, AsMuchAsMayBeHeldIsWrittenWithoutAState) {
  const std::size_t each = sample(1).picture.file->size();
  KeptFiles files(pictures_, 3 * each);
  const std::string first = files.add(sample(1)), second = files.add(sample(2));
  files.leave(first);
  const std::string third = files.add(sample(3));
  files.finish();
  EXPECT_FALSE(is_there(second));  // two are held
  const std::string fourth = files.add(sample(4));
  files.finish();
  EXPECT_FALSE(is_there(first));
  for (const std::string& file : {second, third, fourth}) EXPECT_TRUE(is_there(file)) << file;
  files.leave(second);
  EXPECT_TRUE(is_there(second));
  files.remove_left();
  EXPECT_FALSE(is_there(second));
}

TEST_F(KeptFilesTest, APictureWhoseFileVanishedIsAFailureThatNamesIt) {
  Sample vanished = sample(1);
  vanished.picture.file = nullptr;
  KeptFiles files(pictures_);
  try {
    files.add(vanished);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::StartsWith("photo.png cannot be read any more"));
    EXPECT_EQ(error.kind(), ErrorKind::failure);
  }
}

TEST_F(KeptFilesTest, WithoutAPictureNoStateIsWrittenAndTheFailureIsThrown) {
  KeptFiles files(pictures_);
  const std::string kept = files.add(sample(1));
  files.save([] {});
  files.finish();
  files.leave(kept);
  files.add(sample(2));
  const FileFaults full([](FileStep step, const fs::path&) {
    return FileFault{step == FileStep::write ? ENOSPC : 0};
  });
  bool state = false;
  files.save([&] { state = true; });
  EXPECT_THROW(files.finish(), Error);
  EXPECT_FALSE(state);
  EXPECT_TRUE(is_there(kept));
}

}  // namespace
}  // namespace riffle
