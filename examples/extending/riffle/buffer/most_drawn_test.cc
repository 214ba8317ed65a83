#include "riffle/buffer/most_drawn.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

namespace riffle {
namespace {

using testing::ElementsAre;
using Slots = std::vector<Slot>;

TEST(MostDrawn, WhoWasDrawnMostLeavesFirstThenTheOldest) {
  MostDrawn policy;
  policy.inserted(Slots{5, 2, 9, 0}, {});
  policy.drawn(Slots{9, 0});
  policy.drawn(Slots{0});
  EXPECT_THAT(policy.evict(3), ElementsAre(0, 9, 5));
  EXPECT_EQ(policy.stats(false).evictions.at("most_drawn"), 3);
}

TEST(MostDrawn, ASlotThatIsUsedAgainBeginsWithoutDraws) {
  MostDrawn policy;
  policy.inserted(Slots{0, 1}, {});
  policy.drawn(Slots{0});
  policy.evict(1);
  policy.inserted(Slots{0}, {});
  EXPECT_THAT(policy.evict(2), ElementsAre(1, 0));
}

TEST(MostDrawn, ARestoredPolicyDecidesTheSame) {
  MostDrawn first;
  first.inserted(Slots{4, 1, 3, 7}, {});
  first.drawn(Slots{3, 7});
  first.evict(1);
  MostDrawn second;
  second.inserted(Slots{8}, {});
  second.restore(first.save());
  for (MostDrawn* policy : {&first, &second}) policy->inserted(Slots{8}, {});
  EXPECT_EQ(first.evict(4), second.evict(4));
  EXPECT_EQ(second.stats(false).evictions.at("most_drawn"), 5);
}

}  // namespace
}  // namespace riffle
