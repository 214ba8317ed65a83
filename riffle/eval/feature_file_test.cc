#include "riffle/eval/feature_file.h"

#include <cerrno>
#include <cstring>

#include <gtest/gtest.h>
#include <torch/types.h>

#include "riffle/base/error.h"
#include "riffle/base/file_faults.h"
#include "riffle/base/testing/temp_folder.h"
#include "riffle/base/text.h"
#include "riffle/eval/embedding.h"
#include "riffle/model/objective.h"
#include "riffle/tensors/safetensors.h"

namespace riffle {
namespace {

namespace fs = std::filesystem;

std::shared_ptr<Objective> tiny_model() {
  ModelConfig model;
  model.arch = Arch::resnet10;
  model.stem = Stem::stride2;
  model.width = 4;
  model.projector_out = 8;
  model.predictor_hidden = 4;
  return make_objective(model, 1);
}

class FeatureFileTest : public TempFolder {};

TEST_F(FeatureFileTest, RowsOfAStreamAreThoseOfItsPicturesWhateverTheBatch) {
  const auto model = tiny_model();
  const auto open = [] {
    return open_stream("synthetic:?size=16&frames=3&seed=2", "limit:samples=23");
  };
  const auto stream = open();
  const LabelledFeatures expected = embed(*model, collect(*stream, 0, 16));
  for (const std::int64_t batch : {1, 5, 23, 64}) {
    const fs::path path = folder_ / cat("of", batch, ".safetensors");
    FeatureFile file(path, model->encoder_dim());
    const auto again = open();
    const auto append = [&](const EmbeddedBatch& read) {
      file.append(read.samples, read.features);
    };
    EXPECT_EQ(embed(*model, *again, 0, 16, batch, append), 23);
    file.commit();
    const Safetensors read = read_safetensors(path);
    ASSERT_EQ(read.tensors.size(), 1u);
    EXPECT_EQ(read.tensors[0].first, "features");
    EXPECT_TRUE(torch::allclose(read.tensors[0].second, expected.features, 1e-5, 1e-6)) << batch;
    const auto lines = split(read_text(file.table()), '\n');
    ASSERT_EQ(lines.size(), 25u) << "a head, 23 rows, an end";
    EXPECT_EQ(lines[0], "row,index,clip,label,key");
    EXPECT_TRUE(lines[23].starts_with(cat("22,22,7,", expected.labels[22], ','))) << lines[23];
  }
}

TEST_F(FeatureFileTest, TwoMatricesDoNotShareATable) {
  FeatureFile file(folder_ / "a.npy", 2);
  file.commit();
  EXPECT_THROW(FeatureFile(folder_ / "a.safetensors", 2), Error);
  EXPECT_NO_THROW(FeatureFile(folder_ / "a.npy", 2)) << "which replaces its own";
}

TEST_F(FeatureFileTest, WeightsOfTheSameNameAreNoMatrix) {
  write_safetensors(folder_ / "a.safetensors", {{"weight", torch::zeros({3})}});
  for (int time = 0; time < 2; ++time) {
    FeatureFile file(folder_ / "a.npy", 2);
    file.commit();
  }
  EXPECT_TRUE(fs::exists(folder_ / "a.csv"));
  EXPECT_THROW(FeatureFile(folder_ / "a.safetensors", 2), Error);
}

TEST_F(FeatureFileTest, ASampleCountEndsTheStreamEarly) {
  const auto model = tiny_model();
  const auto stream = open_stream("synthetic:?size=16&seed=2");
  std::int64_t rows = 0;
  EXPECT_EQ(embed(*model, *stream, 11, 16, 4,
                  [&](const EmbeddedBatch& read) { rows += std::ssize(read.samples); }),
            11);
  EXPECT_EQ(rows, 11);
}

TEST_F(FeatureFileTest, NpyHasItsShapeFirstAndThenRawFloats) {
  const fs::path path = folder_ / "f.npy";
  FeatureFile file(path, 3);
  Sample sample;
  sample.label = "a \"b\", c";
  sample.key = "photos/1.jpg";
  const std::vector<Sample> samples(2, sample);
  file.append(samples, torch::arange(6).reshape({2, 3}).to(torch::kFloat32));
  file.append(samples, torch::ones({2, 3}));
  EXPECT_FALSE(fs::exists(path));
  file.commit();
  const std::string text = read_text(path);
  EXPECT_EQ(text.substr(0, 6), "\x93NUMPY");
  EXPECT_EQ(text.size() % 4, 0u);
  EXPECT_NE(text.find("'shape': (4, 3)"), std::string::npos);
  float fifth = 0;
  std::memcpy(&fifth, text.data() + text.size() - 12 * sizeof(float) + 5 * sizeof(float), 4);
  EXPECT_EQ(fifth, 5.0f);
  EXPECT_EQ(split(read_text(folder_ / "f.csv"), '\n')[1], R"(0,0,,"a ""b"", c",photos/1.jpg)");
}

TEST_F(FeatureFileTest, AMatrixIsNeverBesideTheTableOfAnother) {
  const fs::path path = folder_ / "f.npy", table = folder_ / "f.csv";
  const auto write = [&](int rows) {
    FeatureFile file(path, 1);
    file.append(std::vector<Sample>(static_cast<std::size_t>(rows)), torch::zeros({rows, 1}));
    file.commit();
  };
  write(1);
  const std::string old_table = read_text(table);
  // Ends as if killed before each rename in turn.
  for (const fs::path& renamed : {table, path}) {
    const FileFaults faults([&](FileStep step, const fs::path& at) {
      return FileFault{step == FileStep::rename && at == renamed ? EIO : 0};
    });
    EXPECT_THROW(write(2), Error);
    EXPECT_FALSE(fs::exists(path)) << renamed;
  }
  EXPECT_NE(read_text(table), old_table);
  write(3);
  EXPECT_EQ(split(read_text(table), '\n').size(), 5u);
  EXPECT_NE(read_text(path).find("'shape': (3, 1)"), std::string::npos);
}

TEST_F(FeatureFileTest, AnotherEndingIsRefused) {
  EXPECT_THROW(FeatureFile(folder_ / "features.txt", 3), Error);
}

}  // namespace
}  // namespace riffle
