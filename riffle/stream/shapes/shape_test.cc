#include "riffle/stream/shapes/shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/base/log.h"
#include "riffle/stream/testing/generated_stream.h"

namespace riffle {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

void expect_refused(const std::string& shapes, const std::string& first,
                    const std::string& second = "") {
  EXPECT_THAT(
      [&] {
        open_shapes(
            []() -> std::unique_ptr<Stream> {
              ADD_FAILURE() << "the stream was opened";
              return nullptr;
            },
            shapes);
      },
      ThrowsMessage<Error>(AllOf(HasSubstr(first), HasSubstr(second))))
      << shapes;
}

TEST(Shapes, AreReadInnermostFirst) {
  auto shapes = parse_shapes("clips:length=64,size=32,shuffle,limit:samples=9");
  ASSERT_EQ(shapes.size(), 3u);
  EXPECT_EQ(shapes[0].scheme(), "clips");
  EXPECT_EQ(shapes[0].get_integer("length", 0, 0, 100), 64);
  EXPECT_EQ(shapes[0].get_integer("size", 0, 0, 100), 32);
  EXPECT_EQ(shapes[1].scheme(), "shuffle");
  EXPECT_EQ(shapes[2].get_integer("samples", 0, 0, 100), 9);
  EXPECT_TRUE(parse_shapes("").empty());
  EXPECT_TRUE(parse_shapes(" ").empty());
  EXPECT_EQ(parse_shapes("shuffle, loop:times=2 ")[1].get("times", ""), "2");
}

TEST(Shapes, ValuesMayHoldCommasAndCodes) {
  auto shapes = parse_shapes("lifelong:permutation=3,1,2,list=/a%2Cb%20c,loop");
  ASSERT_EQ(shapes.size(), 2u);
  EXPECT_EQ(shapes[0].get("permutation", ""), "3,1,2");
  EXPECT_EQ(shapes[0].get("list", ""), "/a,b c");
}

TEST(Shapes, MixTakesAnAddressAsItStands) {
  auto shapes = parse_shapes("mix:shards:/x-{0,1}.tar?a=b&c=%3F,share=0.2,loop");
  ASSERT_EQ(shapes.size(), 2u);
  EXPECT_EQ(shapes[0].path(), "shards:/x-{0,1}.tar?a=b&c=%3F");
  EXPECT_EQ(shapes[0].get("share", ""), "0.2");
}

TEST(Shapes, TheFirstIsInnermost) {
  const auto source = generated({.samples = 10});
  EXPECT_EQ(take(*open_shapes(source, "limit:samples=4,loop:times=3")).size(), 12u);
  EXPECT_EQ(take(*open_shapes(source, "loop:times=3,limit:samples=4")).size(), 4u);
  EXPECT_EQ(take(*open_shapes(source, "")).size(), 10u);
  EXPECT_EQ(take(*open_stream("synthetic:?samples=9", "subsample:every=3")).size(), 3u);
}

TEST(Shapes, SayAfterHowManySamplesTheyRepeatThemselvesWhereTheyGiveAsManyAsTheStreamBelow) {
  const auto source = generated({.samples = 10, .labels = 4});
  set_log_level(LogLevel::quiet);
  for (const auto& [shapes, period] : std::vector<std::pair<std::string, int>>{
           {"loop", 10},
           {"loop,limit:samples=25", 10},
           {"loop,throttle:rate=1e8", 10},
           {"loop:times=2,loop:times=2", 10},
           {"limit:samples=7,loop", 7},
           {"subsample:every=2,loop", 5},
           {"clips:length=2,loop", 20},
           {"loop,shuffle:window=10", 10},
           {"loop,limit:samples=39,decorrelate:window=10,throttle:rate=1e8", 10},
       }) {
    SCOPED_TRACE(shapes);
    const auto stream = open_shapes(source, shapes);
    take(*stream, 5);
    EXPECT_EQ(stream->period(), std::nullopt);
    take(*stream, 19);
    EXPECT_EQ(stream->period(), period);
    take(*stream, 19);
    EXPECT_EQ(stream->period(), period);
  }
  for (const std::string shapes :
       {"clips:length=2", "clips:length=2,pick=random", "subsample:every=2", "junk",
        "still:length=9", "reupload", "zipf:classes=4", "mix:synthetic:?size=8",
        "mix:synthetic:?size=8,limit:samples=90", "junk,throttle:rate=1e8",
        "subsample:every=2,shuffle:window=5"}) {
    const auto stream = open_shapes(source, "loop," + shapes);
    take(*stream, 100);
    EXPECT_EQ(stream->period(), std::nullopt) << shapes;
  }
  set_log_level(LogLevel::info);
}

TEST(Shapes, AreRefusedBeforeAnythingIsOpened) {
  expect_refused("clip:length=3", "did you mean 'clips'?", "unknown shape 'clip'");
  expect_refused("clips:lenght=3", "did you mean 'length'?", "unknown clips option 'lenght'");
  expect_refused("clips:lenght=3,shuffle", "did you mean 'length'?");
  expect_refused("loop,limt:samples=3", "did you mean 'limit'?");
  expect_refused("clips:length=0", "length");
  expect_refused("clips:64", "'64' in 'clips:64' is not an option");
  expect_refused("=3", "is not a shape");
  expect_refused("clips:length=3,length=4", "stands twice");
  expect_refused("limit", "samples", "limit:samples=");
  expect_refused("limit:sample=3", "did you mean 'samples'?", "unknown limit option 'sample'");
  expect_refused("subsample:evry=3", "did you mean 'every'?");
  expect_refused("throttle:rat=3", "did you mean 'rate'?");
  expect_refused("mix:shre=0.2", "did you mean 'share'?");
  expect_refused("subsample", "every");
  expect_refused("throttle", "rate");
  expect_refused("throttle:rate=-1", "rate");
  expect_refused("mix", "address");
  expect_refused("mix:nowhere:", "nowhere");
  expect_refused("shuffle:window=many", "window");
  expect_refused("decorrelate:windows=4", "did you mean 'window'?");
}

}  // namespace
}  // namespace riffle
