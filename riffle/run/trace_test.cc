#include "riffle/run/trace.h"

#include <gmock/gmock.h>

#include "riffle/image/codec.h"
#include "riffle/image/resize.h"
#include "riffle/run/saved_buffer.h"
#include "riffle/run/testing/runs.h"

namespace riffle {
namespace {

using TraceTest = RunTest;

TEST_F(TraceTest, SamplesOfABufferAreFoundInTheirFolderUnlessTheFileChanged) {
  const auto source = open_stream("synthetic:?frames=1&size=40&seed=3");
  for (int i = 0; i < 60; ++i) {
    write_atomically(folder_ / "photos" / cat(100 + i, ".png"),
                     encode_png(source->next()->picture));
  }
  Config config = tiny("fifo");
  config.stream = "folder:" + (folder_ / "photos").string();
  config.shapes = "loop";
  train(config, folder_ / "run");
  SavedBuffer buffer(RunFolder::open(folder_ / "run"));

  std::vector<WantedOriginal> wanted;
  for (const std::size_t i : {30, 0, 31}) {
    wanted.push_back({buffer.samples()[i].info.index, buffer.pictures(std::vector{i})[0]});
  }
  const auto find = [&] {
    std::vector<std::string> keys(wanted.size());
    const auto stream = open_stream(config.stream, config.shapes);
    find_originals(*stream, wanted, [&](std::size_t i, Sample& sample) {
      EXPECT_EQ(sample.picture.width, 40) << "full size, where the buffer has 16";
      keys[i] = fs::path(sample.key).filename().string();
    });
    return keys;
  };
  const auto name = [&](std::size_t i) { return cat(100 + wanted[i].index % 60, ".png"); };
  EXPECT_THAT(find(), testing::ElementsAre(name(0), name(1), name(2)));

  write_atomically(folder_ / "photos" / name(1), encode_png(Picture(40, 40)));
  EXPECT_THAT(find(), testing::ElementsAre(name(0), "", name(2)));
}

}  // namespace
}  // namespace riffle
