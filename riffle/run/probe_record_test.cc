#include "riffle/run/probe_record.h"

#include <fstream>

#include "riffle/run/testing/runs.h"

namespace riffle {
namespace {

using ProbeRecordTest = RunTest;

TEST_F(ProbeRecordTest, TheNewestOfAnUpdateAndASetCountsAndWhatIsNoRecordDoesNot) {
  const auto folder = RunFolder::create(folder_ / "run", tiny("fifo"));
  EXPECT_TRUE(read_probes(folder).empty());
  append_probe(folder, {200, 30, 60, 20, "cached", "folder:a", "folder:b"});
  append_probe(folder, {100, 25, 50, 15, "cached", "folder:\xff", "folder:b"});
  append_probe(folder, {200, 31, 61, 21, "cached", "folder:a", "folder:b"});
  append_probe(folder, {200, 90, 99, 80, "cached", "folder:a", "folder:c"});
  std::ofstream(folder.probes(), std::ios::app)
      << "[]\n{\"update\":300}\n{\"update\":1e300,\"linear_top1\":1,\"linear_top5\":1,\"knn_top1\":"
         "1,"
         "\"recipe\":\"\",\"train\":\"\",\"val\":\"\"}\nhalf a li";
  const auto records = read_probes(folder);
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[0].update, 100);
  EXPECT_EQ(records[1].linear_top1, 31);
  EXPECT_EQ(records[1].val, "folder:b");
  EXPECT_EQ(records[2].val, "folder:c");
}

}  // namespace
}  // namespace riffle
