#include "riffle/run/picture_log.h"

#include <limits>
#include <numeric>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "riffle/base/error.h"
#include "riffle/base/file_faults.h"
#include "riffle/base/random.h"
#include "riffle/base/testing/temp_folder.h"
#include "riffle/run/run_folder.h"

namespace riffle {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

constexpr std::int64_t kSlots = 32;
constexpr std::int64_t kBytes = 100;

class PictureLogTest : public TempFolder {
 protected:
  PictureLog open() const { return {folder_, slots_, kBytes}; }

  // The picture of a sample tells its arrival number.
  static at::Tensor pictures(const std::vector<std::uint64_t>& arrivals) {
    auto stored = torch::empty({static_cast<std::int64_t>(arrivals.size()), kBytes}, torch::kByte);
    for (std::size_t i = 0; i < arrivals.size(); ++i) {
      stored[static_cast<std::int64_t>(i)].fill_(static_cast<std::uint8_t>(arrivals[i]));
    }
    return stored;
  }

  void append(PictureLog& log, const std::vector<Slot>& slots,
              const std::vector<std::uint64_t>& arrivals) {
    log.append(slots, arrivals, pictures(arrivals));
    for (std::size_t i = 0; i < slots.size(); ++i) held_[slots[i]] = arrivals[i];
  }

  // Another log on the same folder finds the pictures where this one says they are.
  void expect_readable(const PictureLog& log) const {
    std::vector<Slot> slots;
    std::vector<std::uint64_t> arrivals;
    std::vector<PicturePlace> places;
    for (const auto& [slot, arrival] : held_) {
      const auto place = log.find(slot, arrival);
      ASSERT_TRUE(place) << "slot " << slot;
      slots.push_back(slot);
      arrivals.push_back(arrival);
      places.push_back(*place);
    }
    EXPECT_TRUE(open().adopt(slots, arrivals, places).equal(pictures(arrivals)));
  }

  std::uint64_t bytes_on_disk() const {
    std::uint64_t bytes = 0;
    for (const auto& entry : fs::directory_iterator(folder_)) bytes += entry.file_size();
    return bytes;
  }

  static std::ptrdiff_t open_files() {
    return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
  }

  std::int64_t slots_ = kSlots;
  std::map<Slot, std::uint64_t> held_;
};

TEST_F(PictureLogTest, FindsTheNewestPictureOfASlotOnly) {
  auto log = open();
  append(log, {3, 5}, {0, 1});
  append(log, {5}, {2});
  log.sync();
  EXPECT_FALSE(log.find(5, 1));
  EXPECT_FALSE(log.find(4, 0));
  expect_readable(log);
}

// Segments of one batch are larger than those of single pictures: it is not the one with the fewest
// pictures that is worth moving, but the one with the smallest share of them.
TEST_F(PictureLogTest, BatchesOfAnySizeAreMovedLessThanTwiceOnAverage) {
  auto log = open();
  Random random(2, Purpose("log test"), 0);
  std::uint64_t arrival = 0;
  for (int batch = 0; batch < 2000; ++batch) {
    std::vector<Slot> slots;
    std::vector<std::uint64_t> arrivals;
    const float share = batch == 0 ? 1.0f : random.chance(0.2f) ? 0.3f : 0.03f;
    for (Slot slot = 0; slot < kSlots; ++slot) {
      if (!random.chance(share)) continue;
      slots.push_back(slot);
      arrivals.push_back(arrival++);
    }
    if (!slots.empty()) append(log, slots, arrivals);
    log.remove_unused({});
    ASSERT_LT(log.bytes_appended(), 3 * arrival * (kBytes + 16)) << "batch " << batch;
  }
  log.sync();
  expect_readable(log);
}

TEST_F(PictureLogTest, DiskStaysBoundedHoweverLongTheStream) {
  auto log = open();
  Random random(1, Purpose("log test"), 0);
  std::uint64_t arrival = 0;
  std::vector<std::uint64_t> sizes;
  for (int batch = 0; batch < 400; ++batch) {
    std::vector<Slot> slots;
    std::vector<std::uint64_t> arrivals;
    for (Slot slot = 0; slot < kSlots; ++slot) {
      if (batch > 0 && !random.chance(0.12f)) continue;
      slots.push_back(slot);
      arrivals.push_back(arrival++);
    }
    append(log, slots, arrivals);
    if (batch % 20 == 0) log.sync();
    log.remove_unused({});
    sizes.push_back(bytes_on_disk());
  }
  const std::uint64_t slab = kSlots * (kBytes + 16);
  EXPECT_LT(*std::max_element(sizes.begin(), sizes.end()), 3 * slab);
  // Each picture is written about once, and moved less than twice on average.
  EXPECT_LT(log.bytes_appended(), 3 * arrival * (kBytes + 16));
  expect_readable(log);
}

TEST_F(PictureLogTest, ALargeSegmentIsMovedInParts) {
  slots_ = 4096;
  auto log = open();
  std::uint64_t arrival = 0;
  const auto append_all = [&](Slot begin, Slot end) {
    std::vector<Slot> slots(static_cast<std::size_t>(end - begin));
    std::iota(slots.begin(), slots.end(), begin);
    std::vector<std::uint64_t> arrivals(slots.size());
    std::iota(arrivals.begin(), arrivals.end(), arrival);
    arrival += arrivals.size();
    for (std::size_t i = 0; i < slots.size(); ++i) held_[slots[i]] = arrivals[i];
    log.append(slots, arrivals, pictures(arrivals));
  };
  append_all(0, 4096);
  append_all(0, 2048);
  append_all(1024, 3072);
  {
    // The batch, then the last 1,024 of the first segment by 256, each time a header and records.
    int writes = 0;
    const FileFaults faults([&](FileStep step, const fs::path&) {
      return FileFault{step == FileStep::write && ++writes == 6 ? ENOSPC : 0};
    });
    EXPECT_THROW(append_all(0, 512), Error);
  }
  const auto lost = log.take_lost();
  EXPECT_EQ(lost.size(), 256u);
  for (const Slot slot : lost) held_.erase(slot);
  log.sync();
  expect_readable(log);
}

TEST_F(PictureLogTest, SegmentsThatACheckpointNeedsStay) {
  auto log = open();
  for (std::uint64_t batch = 0; batch < 20; ++batch)
    append(log, {0, 1, 2, 3}, {batch, batch, batch, batch});
  log.remove_unused({1, 2});
  EXPECT_TRUE(fs::exists(folder_ / RunFolder::segment_name(1)));
  EXPECT_TRUE(fs::exists(folder_ / RunFolder::segment_name(2)));
  EXPECT_FALSE(fs::exists(folder_ / RunFolder::segment_name(3)));
  log.remove_unused({});
  EXPECT_FALSE(fs::exists(folder_ / RunFolder::segment_name(1)));
  expect_readable(log);
}

TEST_F(PictureLogTest, WhatDiedBetweenTwoCheckpointsIsGoneAtOnce) {
  auto log = open();
  log.remove_unused({});
  append(log, {0, 1, 2, 3}, {0, 1, 2, 3});
  const std::set<std::int64_t> first = {log.find(0, 0)->segment};
  log.need(first);
  const auto files_before = open_files();
  for (std::uint64_t arrival = 4; arrival < 2000; arrival += 4) {
    append(log, {0, 1, 2, 3}, {arrival, arrival + 1, arrival + 2, arrival + 3});
    ASSERT_LT(bytes_on_disk(), 6 * 4 * (kBytes + 16));
    ASSERT_LE(open_files(), files_before + 3);
  }
  EXPECT_TRUE(fs::exists(folder_ / RunFolder::segment_name(*first.begin())));
  expect_readable(log);
}

TEST_F(PictureLogTest, FewFilesAreOpenHoweverFarApartCheckpointsAre) {
  constexpr std::int64_t kMany = 200;
  PictureLog log(folder_, kMany, kBytes);
  const auto files_before = open_files();
  for (Slot slot = 0; slot < kMany - 1; ++slot) {
    append(log, {slot}, {static_cast<std::uint64_t>(slot)});
    // Each failure ends a segment.
    const FileFaults faults([](FileStep step, const fs::path&) {
      return FileFault{step == FileStep::write ? EIO : 0};
    });
    EXPECT_THROW(
        log.append(std::vector<Slot>{kMany - 1}, std::vector<std::uint64_t>{999}, pictures({999})),
        Error);
    ASSERT_LT(open_files(), files_before + 80);
  }
  for (const auto& [slot, arrival] : held_) EXPECT_TRUE(log.find(slot, arrival)) << slot;
}

TEST_F(PictureLogTest, ASegmentThatIsThereIsNeverWrittenTo) {
  auto log = open();
  auto other = open();
  append(other, {0, 1}, {0, 1});
  const auto before = read_bytes(folder_ / RunFolder::segment_name(1));
  append(log, {0, 1}, {2, 3});
  EXPECT_EQ(read_bytes(folder_ / RunFolder::segment_name(1)), before);
  expect_readable(log);
}

TEST_F(PictureLogTest, ALogOpenedAgainContinuesInNewSegments) {
  auto log = open();
  append(log, {0, 1}, {0, 1});
  auto again = open();
  const std::vector<PicturePlace> places = {*log.find(0, 0), *log.find(1, 1)};
  again.adopt(std::vector<Slot>{0, 1}, std::vector<std::uint64_t>{0, 1}, places);
  append(again, {1}, {2});
  EXPECT_EQ(again.find(1, 2)->segment, places[0].segment + 1);
  again.remove_unused({});
  expect_readable(again);
}

TEST_F(PictureLogTest, WhatAFullDiskDidNotTakeIsNamedAndCanBeAppendedLater) {
  auto log = open();
  append(log, {0, 1}, {0, 1});
  {
    const FileFaults faults([](FileStep step, const fs::path&) {
      return FileFault{step == FileStep::write ? ENOSPC : 0};
    });
    EXPECT_THROW(
        log.append(std::vector<Slot>{1, 2}, std::vector<std::uint64_t>{2, 3}, pictures({2, 3})),
        Error);
  }
  EXPECT_THAT(log.take_lost(), UnorderedElementsAre(1, 2));
  EXPECT_TRUE(log.take_lost().empty());
  EXPECT_FALSE(log.find(1, 2));
  append(log, {1, 2}, {2, 3});
  log.sync();
  expect_readable(log);
}

TEST_F(PictureLogTest, AFailedFlushLosesAllThatCameSinceTheLastOne) {
  auto log = open();
  append(log, {0, 1}, {0, 1});
  log.sync();
  append(log, {1, 2}, {2, 3});
  {
    const FileFaults faults(
        [](FileStep step, const fs::path&) { return FileFault{step == FileStep::sync ? EIO : 0}; });
    EXPECT_THROW(log.sync(), Error);
  }
  EXPECT_THAT(log.take_lost(), UnorderedElementsAre(1, 2));
  EXPECT_TRUE(log.find(0, 0));
  append(log, {1, 2}, {2, 3});
  log.sync();
  expect_readable(log);
}

TEST_F(PictureLogTest, PlacesThatDoNotExistAreRefused) {
  auto log = open();
  append(log, {3}, {0});
  const std::vector<Slot> slots = {3};
  const std::vector<std::uint64_t> arrivals = {0};
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t segment : {std::int64_t{-1}, std::int64_t{0}, std::int64_t{2}, kMost}) {
    const std::vector<PicturePlace> places = {{segment, 0}};
    EXPECT_THROW(open().adopt(slots, arrivals, places), Error) << segment;
  }
  for (const std::int64_t record : {std::int64_t{-1}, std::int64_t{1}, kMost, kMost / 116}) {
    const std::vector<PicturePlace> places = {{1, record}};
    EXPECT_THROW(open().adopt(slots, arrivals, places), Error) << record;
  }
}

TEST_F(PictureLogTest, DamageIsFoundAndTheFileNamed) {
  auto log = open();
  append(log, {0, 1}, {0, 1});
  log.sync();
  const fs::path path = folder_ / RunFolder::segment_name(1);
  const std::vector<PicturePlace> place = {*log.find(1, 1)};
  const std::vector<std::uint64_t> arrival = {1};
  const std::vector<Slot> slot = {1};
  const auto refusal = [&] {
    try {
      open().adopt(slot, arrival, place);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(refusal(), "accepted");
  const auto whole = read_bytes(path);
  for (const std::size_t at :
       {std::size_t{3}, std::size_t{20}, whole.size() - 1, whole.size() - kBytes - 10}) {
    auto damaged = whole;
    damaged[at] ^= std::byte{1};
    write_atomically(path, damaged);
    EXPECT_THAT(refusal(), HasSubstr(path.string())) << at;
  }
  write_atomically(path, std::span(whole).first(whole.size() - 1));
  EXPECT_THAT(refusal(), HasSubstr("ends early"));
  fs::remove(path);
  EXPECT_THAT(refusal(), HasSubstr(path.string()));
}

}  // namespace
}  // namespace riffle
