#include "riffle/run/disk_need.h"

#include "riffle/run/testing/runs.h"

namespace riffle {
namespace {

class DiskNeedTest : public TempFolder {};

TEST_F(DiskNeedTest, ARunTakesLessThanWasSaidAndNotMuchLess) {
  // As many as 60 updates make are kept of the second, however many may be.
  for (const auto& [policy, keep] : {std::pair{"merge", 2}, std::pair{"fifo", 1000}}) {
    Config config = tiny(policy);
    config.learner.train.max_updates = 60;
    config.checkpoint.keep = keep;
    const fs::path run = folder_ / policy;
    train(config, run);
    std::uint64_t taken = 0;
    for (const auto& file : fs::directory_iterator(run / "checkpoints")) {
      taken += file.file_size();
    }
    const auto stream = open_stream(config.stream, config.shapes);
    Learner learner(config.learner, *stream);
    const auto said = checkpoint_bytes(config, learner);
    EXPECT_LE(taken, said) << policy;
    EXPECT_GE(taken, said / 4) << policy;
  }
}

}  // namespace
}  // namespace riffle
