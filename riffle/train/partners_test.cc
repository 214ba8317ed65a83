#include "riffle/train/partners.h"

#include <cstdlib>
#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace riffle {
namespace {

using testing::ElementsAre;

std::vector<Sample> samples_of_clips(const std::vector<std::int64_t>& clips) {
  std::vector<Sample> samples(clips.size());
  for (std::size_t i = 0; i < clips.size(); ++i) samples[i].clip = clips[i];
  return samples;
}

std::vector<std::int64_t> partners_of(const std::vector<std::int64_t>& clips,
                                      std::int64_t most_apart, std::uint64_t position = 0) {
  Random random(3, Purpose("partner"), position);
  return choose_partners(samples_of_clips(clips), most_apart, random);
}

TEST(Partners, AreOtherFramesOfTheSameClipAtMostSoFarApartAndEachIsChosen) {
  // Clips of five frames that take turns.
  std::vector<std::int64_t> clips;
  for (std::int64_t i = 0; i < 15; ++i) clips.push_back(i % 3);
  std::map<std::int64_t, std::set<std::int64_t>> chosen;
  for (std::uint64_t position = 0; position < 200; ++position) {
    const auto partners = partners_of(clips, 2, position);
    ASSERT_EQ(partners.size(), clips.size());
    for (std::int64_t i = 0; i < 15; ++i) {
      const std::int64_t partner = partners[static_cast<std::size_t>(i)];
      EXPECT_EQ(partner % 3, i % 3) << "of the same clip";
      EXPECT_NE(partner, i);
      EXPECT_LE(std::abs(partner / 3 - i / 3), 2);
      chosen[i].insert(partner);
    }
  }
  EXPECT_THAT(chosen[0], ElementsAre(3, 6));
  EXPECT_THAT(chosen[7], ElementsAre(1, 4, 10, 13));
  EXPECT_THAT(chosen[14], ElementsAre(8, 11));
}

TEST(Partners, ASampleWithoutAnotherFrameOfItsClipIsItsOwn) {
  const auto partners = partners_of({7, kNoClip, 8, kNoClip, 9, 9}, 100);
  EXPECT_THAT(partners, ElementsAre(0, 1, 2, 3, 5, 4));
  EXPECT_EQ(count_alone(partners), 4);
  EXPECT_TRUE(partners_of({}, 3).empty());
}

TEST(Partners, AreAFunctionOfThePositionAlone) {
  const std::vector<std::int64_t> clips(40, 1);
  EXPECT_EQ(partners_of(clips, 8, 4), partners_of(clips, 8, 4));
  EXPECT_NE(partners_of(clips, 8, 4), partners_of(clips, 8, 5));
}

}  // namespace
}  // namespace riffle
