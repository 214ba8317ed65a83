// Run alone and under mpirun as several ranks: ranks that share the encoding get the features of
// one process, bit for bit.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/dist/ranks.h"
#include "riffle/eval/probe.h"
#include "riffle/eval/testing/narrow_model.h"
#include "riffle/stream/testing/picture_folder.h"
#include "riffle/stream/uri.h"

namespace riffle {
namespace {

constexpr const char* kPictures = "synthetic:?frames=1&classes=4&size=16&seed=1";

// Gives a number of samples, then fails.
class FailingStream : public Stream {
 public:
  explicit FailingStream(int samples) : below_(open_stream(kPictures)), left_(samples) {}
  std::optional<Sample> next() override {
    if (left_-- == 0) throw Error("the camera fell off", ErrorKind::failure);
    return below_->next();
  }
  std::string position() const override { return below_->position(); }
  void seek(const std::string& position) override { below_->seek(position); }

 private:
  std::unique_ptr<Stream> below_;
  int left_;
};

class RanksEmbedding : public PictureFolder {
 protected:
  RanksEmbedding() { at::set_num_threads(1); }

  struct Embedded {
    std::vector<std::uint64_t> indices;
    std::vector<std::string> positions;
    at::Tensor features;
  };

  Embedded embedded(Stream& stream, std::int64_t samples, Ranks& ranks) {
    constexpr std::int64_t kBatch = 16;
    Embedded all;
    std::vector<at::Tensor> parts;
    const auto use = [&](const EmbeddedBatch& read) {
      for (const Sample& sample : read.samples) all.indices.push_back(sample.index);
      all.positions.push_back(read.position);
      parts.push_back(read.features);
    };
    const torch::NoGradGuard no_gradient;
    const auto count = embed(*model_, stream, samples, 16, kBatch, use, ranks);
    EXPECT_EQ(count, std::ssize(all.indices));
    all.features = at::cat(parts);
    return all;
  }

  Ranks& ranks_ = ranks_of_process();
  const bool is_last_ = ranks_.rank() == ranks_.size() - 1;
  const std::shared_ptr<Objective> model_ = narrow_model();
};

// Of seven batches, 2, 3 and 4 ranks have an incomplete last round; of one, too.
TEST_F(RanksEmbedding, GivesTheFeaturesOfOneProcess) {
  for (const std::int64_t samples : {100, 96, 5}) {
    SCOPED_TRACE(samples);
    const auto stream = open_stream(cat(kPictures, "&samples=", samples));
    const auto same = open_stream(kPictures);
    const Embedded expected = embedded(*stream, 0, one_rank());
    const Embedded found = embedded(*same, samples, ranks_);
    EXPECT_EQ(found.indices, expected.indices);
    EXPECT_EQ(found.positions, expected.positions);
    EXPECT_TRUE(found.features.equal(expected.features));
  }
}

// Each rank has a folder of its own, with the same files.
TEST_F(RanksEmbedding, GivesTheFeaturesOfOneProcessFromAFolderWithBadPictures) {
  for (int i = 0; i < 175; ++i) {
    const std::string name = cat(1000 + i, ".png");
    const bool bad = i == 3 || (i > 110 && i < 115) || i == 174;
    bad ? put_text(name, "no picture") : put_bytes(name, solid_png(i));
  }
  const std::string source = cat("folder:", encode_percent(folder_.string()), "?threads=2");
  for (const std::int64_t samples : {0, 100, 169}) {
    SCOPED_TRACE(samples);
    const auto stream = open_stream(source), same = open_stream(source);
    const Embedded expected = embedded(*stream, samples, one_rank());
    const Embedded found = embedded(*same, samples, ranks_);
    EXPECT_EQ(found.indices, expected.indices);
    EXPECT_EQ(found.positions, expected.positions);
    EXPECT_TRUE(found.features.equal(expected.features));
    EXPECT_EQ(same->skipped(), stream->skipped());
  }
}

TEST_F(RanksEmbedding, FailsOnAllWhenTheStreamOfOneFails) {
  FailingStream stream(is_last_ ? 60 : 1000000);
  try {
    embedded(stream, 200, ranks_);
    FAIL() << "the stream fails";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("the camera fell off"));
  }
}

TEST_F(RanksEmbedding, NamesTheRankThatReadOtherPictures) {
  if (ranks_.alone()) return;
  const auto stream = open_stream(kPictures);
  if (is_last_) stream->next();
  try {
    embedded(*stream, 100, ranks_);
    FAIL() << "one rank is a picture ahead";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(),
                testing::HasSubstr(cat("the pictures of rank ", ranks_.size() - 1, " differ")));
  }
}

TEST_F(RanksEmbedding, LetsAProbeFindWhatOneProcessFinds) {
  LinearRecipe crops = linear_recipe("imagenet");
  crops.epochs = 2;
  crops.batch = 64;
  for (const LinearRecipe& recipe : {linear_recipe("cached"), crops}) {
    for (const std::uint64_t held : {std::uint64_t{0}, LabelledSet::kMostHeldBytes}) {
      const auto result = [&](Ranks& ranks) {
        const auto set = [&](int seed, int samples) {
          return LabelledSet(
              [=] {
                return open_stream(
                    cat("synthetic:?frames=1&classes=4&size=16&seed=", seed, "&samples=", samples));
              },
              0, 16, held, ranks);
        };
        LabelledSet train = set(1, 600), val = set(2, 100);
        return probe(*model_, train, val, recipe);
      };
      const ProbeResult expected = result(one_rank()), found = result(ranks_);
      EXPECT_TRUE(found.hits.equal(expected.hits)) << recipe.name;
      EXPECT_EQ(found.linear_top1, expected.linear_top1);
      EXPECT_EQ(found.knn_top1, expected.knn_top1);
      EXPECT_EQ(found.recipe, expected.recipe);
    }
  }
}

}  // namespace
}  // namespace riffle
