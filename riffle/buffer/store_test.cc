#include "riffle/buffer/store.h"

#include <gmock/gmock.h>
#include <torch/types.h>

#include "riffle/base/error.h"
#include "riffle/base/random.h"
#include "riffle/buffer/jpeg_store.h"
#include "riffle/stream/stream.h"

namespace riffle {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

Sample flat_sample(int size, std::uint8_t grey) {
  Sample sample;
  sample.picture = Picture(size, size);
  std::fill(sample.picture.rgb.begin(), sample.picture.rgb.end(), grey);
  return sample;
}

Sample noise_sample(int size, std::uint64_t seed) {
  Sample sample;
  sample.picture = Picture(size, size);
  Random random(seed, Purpose("noise"), 0);
  for (auto& value : sample.picture.rgb) value = static_cast<std::uint8_t>(random.bits());
  return sample;
}

// Horizontal and vertical ramps with an edge: compresses as photographs do.
Sample ramp_sample(int size, int shift) {
  Sample sample;
  sample.picture = Picture(size, size);
  for (int y = 0; y < size; ++y) {
    for (int x = 0; x < size; ++x) {
      auto* rgb = sample.picture.at(x, y);
      rgb[0] = static_cast<std::uint8_t>((x * 2 + shift) % 200);
      rgb[1] = static_cast<std::uint8_t>(y * 2 % 200);
      rgb[2] = x + y > size ? 180 : 60;
    }
  }
  return sample;
}

at::Tensor picture_tensor(const Picture& picture) {
  return torch::tensor(at::ArrayRef<std::uint8_t>(picture.rgb), torch::kByte)
      .view({picture.height, picture.width, 3});
}

at::Tensor stacked(const std::vector<Sample>& samples) {
  std::vector<at::Tensor> pictures;
  for (const Sample& sample : samples) pictures.push_back(picture_tensor(sample.picture));
  return torch::stack(pictures);
}

at::Tensor rows(const Pictures& pictures) {
  return pictures.tensor.index_select(0, torch::tensor(pictures.indices));
}

double mean_error(const at::Tensor& a, const at::Tensor& b) {
  return (a.to(torch::kFloat) - b.to(torch::kFloat)).abs().mean().item<double>();
}

TEST(RawStore, GivesBackThePicturesInTheOrderAskedWithoutACopy) {
  RawStore store(5, 8, BufferMemory::host, at::kCPU);
  const std::vector<Sample> samples = {noise_sample(8, 1), noise_sample(8, 2)};
  store.put(std::vector<std::int64_t>{4, 1}, stacked(samples));
  const auto pictures = store.get(std::vector<std::int64_t>{1, 4, 1});
  ASSERT_EQ(pictures.tensor.sizes(), (at::IntArrayRef{5, 8, 8, 3}));
  const auto got = rows(pictures);
  EXPECT_TRUE(got[0].equal(picture_tensor(samples[1].picture)));
  EXPECT_TRUE(got[1].equal(picture_tensor(samples[0].picture)));
  EXPECT_TRUE(got[2].equal(picture_tensor(samples[1].picture)));
  EXPECT_EQ(store.get(std::vector<std::int64_t>{0}).tensor.data_ptr(), pictures.tensor.data_ptr());
}

TEST(RawStore, RestoresWhatWasSavedAndRefusesOtherSizes) {
  RawStore store(5, 8, BufferMemory::host, at::kCPU);
  const std::vector<Sample> samples = {noise_sample(8, 1), noise_sample(8, 2)};
  const std::vector<std::int64_t> slots = {3, 1};
  store.put(slots, stacked(samples));
  const auto stored = store.read(slots);
  ASSERT_EQ(stored.sizes(), (at::IntArrayRef{2, store.stored_bytes()}));
  RawStore other(5, 8, BufferMemory::host, at::kCPU);
  const std::vector<std::int64_t> elsewhere = {4, 0};
  other.write(elsewhere, stored);
  EXPECT_TRUE(rows(other.get(elsewhere))[1].equal(picture_tensor(samples[1].picture)));
  RawStore small(5, 4, BufferMemory::host, at::kCPU);
  EXPECT_THAT([&] { small.write(slots, stored); }, ThrowsMessage<Error>(HasSubstr("pictures")));
  EXPECT_THROW(other.write(slots, stored.narrow(0, 0, 1)), Error);
  EXPECT_THROW(other.write(slots, stored.to(torch::kFloat)), Error);
}

TEST(JpegStore, PicturesComeBackNearlyTheSameInAnEighthOfTheMemory) {
  constexpr int kSize = 96;
  EXPECT_LT(JpegStore::cell_bytes(224), 224 * 224 * 3 / 7);
  JpegStore store(4, kSize, 85);
  const std::vector<Sample> samples = {ramp_sample(kSize, 0), flat_sample(kSize, 99),
                                       ramp_sample(kSize, 50)};
  store.put(std::vector<std::int64_t>{3, 0, 2}, stacked(samples));
  const auto got = rows(store.get(std::vector<std::int64_t>{0, 2, 3}));
  EXPECT_LT(mean_error(got[0], picture_tensor(samples[1].picture)), 1);
  EXPECT_LT(mean_error(got[1], picture_tensor(samples[2].picture)), 6);
  EXPECT_LT(mean_error(got[2], picture_tensor(samples[0].picture)), 6);
}

TEST(JpegStore, NoiseThatCompressesBadlyStillFits) {
  for (const int size : {1, 8, 32, 224}) {
    JpegStore store(1, size, 100);
    const std::vector<Sample> samples = {noise_sample(size, 5)};
    store.put(std::vector<std::int64_t>{0}, stacked(samples));
    EXPECT_EQ(store.get(std::vector<std::int64_t>{0}).tensor.sizes(),
              (at::IntArrayRef{1, size, size, 3}));
  }
}

TEST(JpegStore, RestoresWhatWasSavedAndRefusesDamage) {
  JpegStore store(3, 32, 85);
  const std::vector<Sample> samples = {noise_sample(32, 1), ramp_sample(32, 2)};
  store.put(std::vector<std::int64_t>{0, 1}, stacked(samples));
  // A slot that was used before leaves nothing of its old content in the state.
  JpegStore fresh(3, 32, 85);
  fresh.put(std::vector<std::int64_t>{0, 1}, stacked({samples[1], samples[0]}));
  fresh.put(std::vector<std::int64_t>{0, 1}, stacked(samples));
  const std::vector<std::int64_t> slots = {1, 0};
  EXPECT_TRUE(store.read(slots).equal(fresh.read(slots)));
  JpegStore other(3, 32, 85);
  other.write(slots, store.read(slots));
  EXPECT_TRUE(other.get(slots).tensor.equal(store.get(slots).tensor));

  auto damaged = store.read(slots);
  damaged.narrow(1, 0, 8).fill_(1);
  EXPECT_THROW(other.write(slots, damaged), Error);
  damaged.narrow(1, 0, 8).fill_(0);
  other.write(slots, damaged);
  EXPECT_THAT([&] { other.get(slots); }, ThrowsMessage<Error>(HasSubstr("slot")));
  EXPECT_THROW(JpegStore(3, 64, 85).write(slots, store.read(slots)), Error);
}

}  // namespace
}  // namespace riffle
