#include "riffle/run/metrics.h"

#include <cmath>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "riffle/base/error.h"
#include "riffle/base/file_faults.h"
#include "riffle/base/testing/temp_folder.h"
#include "riffle/base/text.h"

namespace riffle {
namespace {

namespace fs = std::filesystem;

class MetricsTest : public TempFolder {
 protected:
  std::vector<std::int64_t> updates() const {
    std::vector<std::int64_t> found;
    for (const auto& line : split(read_text(path_), '\n')) {
      if (!line.empty()) found.push_back(nlohmann::json::parse(line)["update"]);
    }
    return found;
  }

  fs::path path_ = folder_ / "metrics.jsonl";
};

TEST_F(MetricsTest, ALineIsOneJsonObject) {
  MetricsFile file(path_, {});
  file.write(7, {{"loss", -0.5}, {"count", 3}, {"rate", INFINITY}});
  EXPECT_EQ(read_text(path_), "{\"update\":7,\"loss\":-0.5,\"count\":3,\"rate\":null}\n");
}

TEST_F(MetricsTest, TheLastLineIsReplacedIfItIsOfThatUpdate) {
  MetricsFile file(path_, {});
  file.replace_last(1, {{"loss", 1}});
  file.replace_last(1, {{"loss", 2}});
  file.write(2, {{"loss", 3}});
  {
    const FileFaults faults([&](FileStep step, const fs::path&) {
      return FileFault{step == FileStep::write ? ENOSPC : 0};
    });
    EXPECT_THROW(file.replace_last(2, {{"loss", 4}}), Error);
  }
  file.replace_last(2, {{"loss", 5}});
  file.write(3, {});
  EXPECT_EQ(read_text(path_),
            "{\"update\":1,\"loss\":2}\n{\"update\":2,\"loss\":5}\n{\"update\":3}\n");
}

TEST_F(MetricsTest, WhatCameAfterACheckpointAndHalfALineIsCutOff) {
  {
    MetricsFile file(path_, {});
    for (const int update : {1, 2, 3, 4}) file.write(update, {});
  }
  AppendFile(path_).append("{\"update\":5,\"lo");
  MetricsFile(path_, {}, 3).write(4, {});
  EXPECT_THAT(updates(), testing::ElementsAre(1, 2, 3, 4));
}

TEST_F(MetricsTest, AMonthOfLinesStaysSmall) {
  const Thinning options{10, 16};
  MetricsFile file(path_, options);
  std::size_t most = 0;
  for (std::int64_t line = 1; line <= 4096; ++line) {
    file.write(10 * line, {});
    if (line % 16 == 0 || line % 16 == 15) most = std::max(most, updates().size());
  }
  // Two times `dense`, one more for each of 7 doublings since, and a pass that is due.
  EXPECT_LE(most, 16u * (2 + 7 + 1));
  const auto left = updates();
  EXPECT_EQ(left.back(), 40960);
  EXPECT_LE(left.front(), 40960 / 16) << "the beginning is still there, thinly";
  for (std::int64_t line = 4096 - 16; line <= 4096; ++line) {
    EXPECT_THAT(left, testing::Contains(10 * line));
  }
}

TEST_F(MetricsTest, AnInterruptedRunEndsWithTheSameLines) {
  const Thinning options{1, 8};
  const auto run = [&](std::int64_t from, std::int64_t to) {
    MetricsFile file(path_, options, from);
    for (std::int64_t update = from + 1; update <= to; ++update) file.write(update, {});
  };
  run(0, 300);
  const auto whole = updates();
  for (const auto& [killed_at, checkpoint] :
       std::vector<std::pair<int, int>>{{100, 90}, {97, 95}, {160, 100}, {250, 10}, {299, 299}}) {
    fs::remove(path_);
    run(0, killed_at);
    run(checkpoint, 300);
    EXPECT_EQ(updates(), whole) << killed_at << " " << checkpoint;
  }
}

TEST_F(MetricsTest, ALineThatTheDiskDidNotTakeIsLeftOutWhole) {
  MetricsFile file(path_, {});
  file.write(1, {});
  {
    int writes = 0;
    const FileFaults faults([&](FileStep step, const fs::path&) {
      return FileFault{step == FileStep::write && ++writes > 1 ? ENOSPC : 0, 5};
    });
    EXPECT_THROW(file.write(2, {}), Error);
  }
  file.write(3, {});
  EXPECT_THAT(updates(), testing::ElementsAre(1, 3));
}

TEST_F(MetricsTest, AFlushThatFailsAfterThinningCostsNoLaterLine) {
  MetricsFile file(path_, {1, 4});
  for (std::int64_t update = 1; update < 12; ++update) file.write(update, {});
  {
    // The new file has its name already when the folder is flushed.
    const FileFaults faults([&](FileStep step, const fs::path& path) {
      return FileFault{step == FileStep::sync && path == folder_ ? EIO : 0};
    });
    file.write(12, {});
  }
  file.write(13, {});
  EXPECT_THAT(updates(), testing::ElementsAre(2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13));
}

TEST_F(MetricsTest, ThinningThatADiskDoesNotTakeIsLeftToTheNextPass) {
  MetricsFile file(path_, {1, 4});
  for (std::int64_t update = 1; update < 12; ++update) file.write(update, {});
  {
    const FileFaults faults([&](FileStep step, const fs::path& path) {
      return FileFault{step == FileStep::write && path != path_ ? ENOSPC : 0};
    });
    file.write(12, {});
  }
  EXPECT_EQ(updates().size(), 12u) << "the line itself was taken";
  for (std::int64_t update = 13; update <= 16; ++update) file.write(update, {});
  EXPECT_THAT(updates(), testing::ElementsAre(2, 4, 6, 8, 9, 10, 11, 12, 13, 14, 15, 16));
}

TEST_F(MetricsTest, OnAFullDiskARunStillContinuesFromItsCheckpoint) {
  {
    MetricsFile file(path_, {});
    for (const int update : {1, 2, 3, 4}) file.write(update, {});
  }
  const FileFaults faults([](FileStep step, const fs::path&) {
    return FileFault{step == FileStep::write ? ENOSPC : 0};
  });
  const MetricsFile file(path_, {}, 2);
  EXPECT_THAT(updates(), testing::ElementsAre(1, 2));
}

}  // namespace
}  // namespace riffle
