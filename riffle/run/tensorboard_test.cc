#include "riffle/run/tensorboard.h"

#include <cerrno>
#include <cmath>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "riffle/base/error.h"
#include "riffle/base/file_faults.h"
#include "riffle/base/testing/temp_folder.h"
#include "riffle/run/testing/read_events.h"

namespace riffle {
namespace {

namespace fs = std::filesystem;

class EventFileTest : public TempFolder {};

TEST(Crc32c, MatchesTheExamplesOfTheStandard) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);
}

TEST_F(EventFileTest, ThinsTheEventsOfALongRun) {
  const Thinning options{.every = 10, .dense = 100};
  std::int64_t count = 0;
  for (std::int64_t line = 1; line <= 6400; ++line) {
    const bool written = EventFile::written(10 * line, options);
    if (line < 200) {
      EXPECT_TRUE(written) << line;
    }
    count += written ? 1 : 0;
  }
  EXPECT_EQ(count, 200 + 5 * 100) << "a hundred for each doubling";
  EXPECT_TRUE(EventFile::written(64001, {.every = 1, .dense = 0}));
}

TEST_F(EventFileTest, EveryFileHasANameOfItsOwnThatSortsAfterTheEarlierOnes) {
  const EventFile first(folder_, {}), second(folder_, {}), third(folder_, {});
  EXPECT_LT(first.path(), second.path());
  EXPECT_LT(second.path(), third.path());
}

TEST_F(EventFileTest, AClockThatWasSetBackChangesNothingInTheOrder) {
  const fs::path later = folder_ / "events.out.tfevents.99999999999.000.riffle.1";
  write_atomically(later, "");
  const EventFile first(folder_, {}), second(folder_, {});
  EXPECT_LT(later, first.path());
  EXPECT_LT(first.path(), second.path());
}

TEST_F(EventFileTest, ADiskThatDoesNotTakeAFileIsLeftWithoutOne) {
  {
    const FileFaults faults([](FileStep step, const fs::path&) {
      return FileFault{step == FileStep::write ? ENOSPC : 0};
    });
    EXPECT_THROW(EventFile(folder_, {}), Error);
  }
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(EventFileTest, TensorBoardReadsTheScalarsAndForgetsWhatAResumeTookBack) {
  {
    // Killed before its first checkpoint, a run starts again.
    EventFile file(folder_, {.every = 10});
    file.write(10, {{"loss", 99.0}});
  }
  {
    EventFile file(folder_, {.every = 10});
    for (const std::int64_t update : {10, 20, 30}) {
      file.write(update, {{"loss", -0.25 * static_cast<double>(update)},
                          {"updates_per_batch", std::nan("")},
                          {"nearest_0%", 0.125}});
    }
  }
  // The run was killed after update 30 and continued from the checkpoint of update 20.
  EventFile file(folder_, {.every = 10}, /*last_update=*/20);
  file.write(30, {{"loss", 7.0}});
  file.write(40, {{"loss", 8.0}});

  const auto read = read_by_tensorboard(folder_);
  if (!read) GTEST_SKIP() << "needs tensorboard in a Python (scripts/setup --peers)";
  const auto& scalars = (*read)["scalars"];
  EXPECT_EQ(scalars["loss"], nlohmann::json({{10, -2.5}, {20, -5.0}, {30, 7.0}, {40, 8.0}}));
  EXPECT_EQ(scalars["nearest_0%"], nlohmann::json({{10, 0.125}, {20, 0.125}}));
  EXPECT_FALSE(scalars.contains("updates_per_batch"));
}

TEST_F(EventFileTest, TensorBoardReadsPicturesAndTheConfiguration) {
  EventFile file(folder_, {.every = 1});
  file.write_configuration({{"train.lr", "0.05"},
                            {"train.drain", "false"},
                            {"stream.uri", "folder:photos"},
                            {"buffer.capacity", "8GiB"}});
  file.write(1, {{"loss", 1.0}});
  file.write_picture(1, "buffer", Picture(24, 16));
  file.write_picture(2, "buffer", Picture(24, 16));
  const auto read = read_by_tensorboard(folder_);
  if (!read) GTEST_SKIP() << "needs tensorboard in a Python (scripts/setup --peers)";
  EXPECT_EQ((*read)["pictures"]["buffer"], nlohmann::json({{1, 24, 16}, {2, 24, 16}}));
  EXPECT_EQ((*read)["configuration"], (nlohmann::json{{"train.lr", 0.05},
                                                      {"train.drain", false},
                                                      {"stream.uri", "folder:photos"},
                                                      {"buffer.capacity", "8GiB"}}));
}

}  // namespace
}  // namespace riffle
