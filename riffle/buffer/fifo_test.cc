#include "riffle/buffer/fifo.h"

#include <gmock/gmock.h>
#include <torch/types.h>

namespace riffle {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Slots = std::vector<Slot>;

TEST(Fifo, OldestLeaveFirstWhateverTheirSlot) {
  Fifo fifo;
  fifo.inserted(Slots{5, 2, 9}, {});
  fifo.inserted(Slots{0}, {});
  EXPECT_THAT(fifo.evict(2), ElementsAre(5, 2));
  fifo.inserted(Slots{5}, {});
  EXPECT_THAT(fifo.evict(0), IsEmpty());
  EXPECT_THAT(fifo.evict(3), ElementsAre(9, 0, 5));
}

TEST(Fifo, DrawsAndFeaturesChangeNothing) {
  Fifo fifo;
  fifo.inserted(Slots{0, 1, 2}, torch::ones({3, 4}));
  fifo.drawn(Slots{0});
  fifo.tracked(Slots{0}, torch::ones({1, 4}));
  EXPECT_THAT(fifo.evict(3), ElementsAre(0, 1, 2));
  EXPECT_EQ(fifo.stats(true).with_feature, 0);
  EXPECT_EQ(fifo.stats(true).evictions.at("oldest"), 3);
}

TEST(Fifo, RestoredQueueGoesOn) {
  Fifo fifo;
  fifo.inserted(Slots{4, 1, 3}, {});
  fifo.evict(1);
  Fifo other;
  other.inserted(Slots{7}, {});
  other.restore(fifo.save());
  EXPECT_EQ(other.stats(false).evictions.at("oldest"), 1);
  EXPECT_THAT(other.evict(2), ElementsAre(1, 3));
}

}  // namespace
}  // namespace riffle
