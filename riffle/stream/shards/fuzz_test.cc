// Thousands of damaged shards, the same on every run: nothing that comes in may crash, hang or take
// memory for what is not there.
#include <atomic>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "riffle/base/testing/damage.h"
#include "riffle/base/text.h"
#include "riffle/image/codec.h"
#include "riffle/stream/shards/reader.h"
#include "riffle/stream/testing/generated_tar.h"

namespace riffle {
namespace {

constexpr std::uint64_t kMutations = 2500;
#ifdef __SANITIZE_ADDRESS__
constexpr long kMaxGrowthMib = 1000;  // freed memory is held back
#else
constexpr long kMaxGrowthMib = 200;
#endif

// The members of a tar as writers of every sort could have written it.
std::vector<std::byte> made_shard() {
  Picture picture(24, 16);
  for (std::size_t i = 0; i < picture.rgb.size(); ++i) {
    picture.rgb[i] = static_cast<std::uint8_t>(i * 7);
  }
  const std::string pax = "28 path=cat/a name in pax.png\n30 mtime=1700000000.123456789\n";
  return GeneratedTar()
      .add_folder("cat/")
      .add("cat/1.png", encode_png(picture))
      .add("cat/1.cls", "3\n")
      .add("dog/" + std::string(120, 'd') + ".jpg", encode_jpeg(picture))
      .add("dog/2.json", R"({"label": "dog", "more": [1, 2.5, {"a": null}]})")
      .add("dog/2.jpg", encode_jpeg(picture))
      .add_header("pax", GeneratedTar::octal(pax.size()), 'x', pax)
      .add("cat/3.png", encode_png(picture))
      .add("cat/4.png", encode_png(picture))
      .finished();
}

// Another size, type or name in a header, or any other damage.
void damage_shard(std::vector<std::byte>& bytes, Random& random) {
  if (random.below(6) > 0) return damage(bytes, random, {.piece = 1500});
  const auto block = random.below(bytes.size() / GeneratedTar::kBlock + 1) * GeneratedTar::kBlock;
  constexpr std::size_t kFields[] = {0, 124, 125, 135, 156, 257, 345};
  const auto at = block + kFields[random.below(std::size(kFields))];
  for (auto i = at; i < std::min<std::uint64_t>(bytes.size(), at + 1 + random.below(12)); ++i) {
    bytes[i] = random.chance(0.5f) ? static_cast<std::byte>(random.below(256)) : std::byte{'7'};
  }
}

// So that damage in headers reaches what comes after the check of the sum.
void repair_sums(std::vector<std::byte>& bytes) {
  for (std::size_t at = 0; at + GeneratedTar::kBlock <= bytes.size(); at += GeneratedTar::kBlock) {
    if (std::memcmp(bytes.data() + at + 257, "ustar", 5) != 0) continue;
    std::memset(bytes.data() + at + 148, ' ', 8);
    unsigned sum = 0;
    for (std::size_t i = 0; i < GeneratedTar::kBlock; ++i)
      sum += static_cast<unsigned>(bytes[at + i]);
    char digits[16];
    std::snprintf(digits, sizeof(digits), "%06o", sum);
    std::memcpy(bytes.data() + at + 148, digits, 7);
  }
}

// A file in memory: a disk would be waited for thousands of times.
class ShardsFuzz : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    file_ = ::memfd_create("riffle-fuzz", MFD_CLOEXEC);
    ASSERT_GE(file_, 0);
    path_ = {cat("/proc/self/fd/", file_)};
  }
  void TearDown() override { ::close(file_); }

  void put(std::span<const std::byte> bytes) const {
    ASSERT_EQ(::ftruncate(file_, 0), 0);
    ASSERT_EQ(::pwrite(file_, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  }

  int file_ = -1;
  std::vector<std::string> path_;
};

long peak_memory_mib() {
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

TEST_P(ShardsFuzz, DamagedShardsAreReadOrLeft) {
  const auto original = made_shard();
  const auto filter = GetParam();
  const auto packed = filter == "none" ? original : compressed(original, filter);
  const long before = peak_memory_mib();
  std::map<std::string, int> outcomes;
  for (std::uint64_t i = 0; i < kMutations; ++i) {
    Random random(13, Purpose("damaged shards"), i);
    // Damage inside the compressed data, or in what it holds.
    const bool outside = filter != "none" && random.chance(0.7f);
    auto bytes = outside ? packed : original;
    for (auto times = 1 + random.below(3); times > 0; --times) damage_shard(bytes, random);
    if (!outside && random.chance(0.7f)) repair_sums(bytes);
    if (!outside && filter != "none") bytes = compressed(bytes, filter);
    put(bytes);
    ShardPlace start;
    if (random.chance(0.3f)) start = {0, static_cast<std::int64_t>(random.below(8000)), 1};
    const std::atomic<bool> leave = false;
    ShardReader reader(path_, {}, start, leave);
    std::size_t items = 0;
    while (const auto item = reader.next()) {
      ASSERT_LT(++items, 100u);
      if (item->failure.reason.empty()) {
        DecodeFailure failure;
        const auto picture = decode(item->bytes, {.max_pixels = 1 << 18}, failure);
        ++outcomes[picture ? "decoded" : "not decoded"];
      } else {
        ++outcomes[item->failure.reason];
      }
    }
  }
  for (const auto& [outcome, count] : outcomes) {
    EXPECT_THAT(outcome, testing::AnyOf("decoded", "not decoded", "broken shard", "not a tar",
                                        "too large", "unsafe name", "bad label"));
  }
  // Damage of every sort was reached, not only the first check.
  EXPECT_GT(outcomes["decoded"], 500);
  EXPECT_GT(outcomes["broken shard"], 200);
  EXPECT_GT(outcomes["not a tar"], 50);
  EXPECT_LT(peak_memory_mib() - before, kMaxGrowthMib);
}

INSTANTIATE_TEST_SUITE_P(Compression, ShardsFuzz,
                         testing::Values("none", "gzip", "bzip2", "xz", "zstd", "lz4"),
                         [](const auto& compression) { return compression.param; });

}  // namespace
}  // namespace riffle
