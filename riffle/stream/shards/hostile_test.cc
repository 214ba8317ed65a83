// Shards that are damaged, or lie about themselves: skipped or left, and counted.
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "riffle/base/error.h"
#include "riffle/stream/testing/matchers.h"
#include "riffle/stream/testing/shards_folder.h"

namespace riffle {
namespace fs = std::filesystem;
namespace {

class ShardsHostile : public ShardsFolder {};

TEST_F(ShardsHostile, HostileMembersAreSkippedAndCountedByReason) {
  put("a.tar", GeneratedTar()
                   .add("1.png", solid_png(1))
                   .add("../../etc/2.png", solid_png(2))
                   .add("/etc/3.png", solid_png(3))
                   .add("._1.png", "a companion, no picture")
                   .add("a\x1b[31m/4.png", "")
                   .add("5.png", "<html>")
                   .add_header("6.png", GeneratedTar::octal(0), '2', "")  // a link to nowhere
                   .add("7.png", solid_png(7)));
  const auto stream = open();
  EXPECT_THAT(levels(*stream), ElementsAre(1, 7));
  EXPECT_THAT(stream->skipped(),
              ElementsAre(Pair("empty", 1), Pair("not a picture", 1), Pair("unsafe name", 2)));
}

TEST_F(ShardsHostile, ABrokenShardIsLeftAtThatPointAndTheNextFollows) {
  const auto one = GeneratedTar().add("1.png", solid_png(1));
  put("a-negative.tar", GeneratedTar(one).add_header("n.png", GeneratedTar::binary(-512), '0', ""));
  put("b-huge.tar",
      GeneratedTar(one).add_header("h.png", GeneratedTar::binary(std::int64_t{1} << 62), '0', ""));
  auto noise = GeneratedTar(one).open_ended();
  noise.resize(noise.size() + 3000, std::byte{'x'});
  put_bytes("c-noise.tar", noise);
  auto cut = GeneratedTar(one).add("2.png", std::string(5000, 'x')).open_ended();
  cut.resize(cut.size() - 2000);
  put_bytes("d-cut.tar", cut);
  auto packed = compressed(one.finished(), "gzip");
  packed.resize(60);
  put_bytes("e-cut.tar.gz", packed);
  put_bytes("f-html.tar", std::vector(2000, std::byte{'<'}));
  put_bytes("g-empty.tar", std::span<const std::byte>());
  fs::create_directory(folder_ / "h-folder.tar");
  ASSERT_EQ(::mkfifo((folder_ / "i-pipe.tar").c_str(), 0600), 0);
  put("j-sound.tar", GeneratedTar().add("9.png", solid_png(9)));
  const auto stream = open();
  EXPECT_THAT(levels(*stream), ElementsAre(1, 1, 1, 1, 9));
  const auto skipped = stream->skipped();
  EXPECT_EQ(skipped.at("empty shard"), 1);
  EXPECT_EQ(skipped.at("unreadable shard"), 2);
  EXPECT_EQ(skipped.at("too large"), 1);
  EXPECT_EQ(skipped.at("not a tar"), 2);
  EXPECT_EQ(skipped.at("broken shard"), 4);
  std::int64_t all = 0;
  for (const auto& [reason, count] : skipped) all += count;
  EXPECT_EQ(all, 10) << testing::PrintToString(skipped);
}

TEST_F(ShardsHostile, AMemberOverTheLimitIsSkippedUnread) {
  const std::uint64_t size = std::uint64_t{300} << 20;
  const auto head =
      GeneratedTar().add_header("1.png", GeneratedTar::octal(size), '0', "").open_ended();
  put_bytes("a.tar", head);
  fs::resize_file(folder_ / "a.tar", head.size() + size);  // sparse
  const auto rest = GeneratedTar().add("2.png", solid_png(2)).finished();
  std::ofstream out(folder_ / "a.tar", std::ios::binary | std::ios::app);
  out.write(reinterpret_cast<const char*>(rest.data()), static_cast<std::streamsize>(rest.size()));
  out.close();
  const auto stream = open();
  EXPECT_THAT(levels(*stream), ElementsAre(2));
  EXPECT_THAT(stream->skipped(), ElementsAre(Pair("too large", 1)));
}

TEST_F(ShardsHostile, ACompressedShardIsLeftAtAMemberThatWouldTakeHoursToUnpack) {
  put_bytes(
      "a.tar.gz",
      compressed(GeneratedTar()
                     .add("1.png", solid_png(1))
                     .add_header("2.bin", GeneratedTar::binary(std::int64_t{1} << 42), '0', "")
                     .add("3.png", solid_png(3))
                     .finished(),
                 "gzip"));
  const auto stream = open();
  EXPECT_THAT(levels(*stream), ElementsAre(1));
  EXPECT_THAT(stream->skipped(), ElementsAre(Pair("broken shard", 1)));
}

// Each compression multiplies what a few kilobytes can become.
TEST_F(ShardsHostile, AShardThatIsCompressedTwiceIsNotOpened) {
  const auto tar = GeneratedTar().add("1.png", solid_png(1)).finished();
  put_bytes("a.tar.gz", compressed(tar, "gzip"));
  put_bytes("b.tar.gz.gz", compressed(compressed(tar, "gzip"), "gzip"));
  put_bytes("c.tar.bz2.gz", compressed(compressed(tar, "bzip2"), "gzip"));
  const auto stream = open();
  EXPECT_THAT(levels(*stream), ElementsAre(1));
  EXPECT_THAT(stream->skipped(), ElementsAre(Pair("broken shard", 2)));
}

TEST_F(ShardsHostile, AShardThatUnpacksToManyTimesItsSizeIsLeft) {
  // Members below the limit of one, with contents that are not even there.
  GeneratedTar tar;
  tar.add("1.png", solid_png(1));
  tar.add_header("2.bin", GeneratedTar::binary(std::int64_t{3} << 30), '0', "");
  put_bytes("a.tar.gz", compressed(tar.finished(), "gzip"));
  const auto stream = open("threads=0");
  EXPECT_THAT(levels(*stream), ElementsAre(1));
  EXPECT_THAT(stream->skipped(), ElementsAre(Pair("broken shard", 1)));
}

TEST_F(ShardsHostile, AShardIsLeftWhenAsked) {
  GeneratedTar tar;
  for (int i = 0; i < 200; ++i) tar.add(cat(i, ".png"), solid_png(i)).add(cat(i, ".bin"), "more");
  put_bytes("a.tar.gz", compressed(tar.finished(), "gzip"));
  for (const std::string threads : {"threads=0", "threads=2"}) {
    const auto stream = open(threads);
    ASSERT_TRUE(stream->next());
    const auto position = stream->position();
    stream->stop();
    EXPECT_FALSE(stream->next());
    EXPECT_EQ(stream->position(), position);
    EXPECT_TRUE(stream->skipped().empty());
    const auto again = open(threads);
    again->seek(position);
    EXPECT_EQ(levels(*again).size(), 199u);
  }
}

TEST_F(ShardsHostile, AnEndlessGroupDoesNotPileUp) {
  GeneratedTar tar;
  for (int i = 0; i < 2500; ++i) tar.add(cat("same.", i, ".png"), solid_png(i % 200));
  put("a.tar", tar);
  const auto stream = open("threads=1");
  EXPECT_EQ(levels(*stream).size(), 2500u);
}

TEST_F(ShardsHostile, WhereNothingCanBeUsedTheStreamSaysSo) {
  put("a.tar", GeneratedTar().add("1.png", "no picture").add("2.txt", "text"));
  const auto stream = open();
  EXPECT_THAT([&] { stream->next(); }, ThrowsMessage<Error>(AllOf(HasSubstr(folder_.string()),
                                                                  HasSubstr("1 not a picture"))));
}

}  // namespace
}  // namespace riffle
