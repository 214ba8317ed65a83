// The probe against a second implementation of it, in plain Python torch (testdata/), from the same
// weights and pictures to accuracies.

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <torch/types.h>

#include "riffle/base/random.h"
#include "riffle/base/testing/temp_folder.h"
#include "riffle/base/text.h"
#include "riffle/eval/probe.h"
#include "riffle/model/state.h"
#include "riffle/tensors/safetensors.h"
#include "riffle/train/learner.h"

namespace riffle {
namespace {

constexpr int kSize = 16;

// Noisy pictures of one colour; the class says which channels are strong. Colours stray so far from
// their class that no classifier can tell all.
LabelledPictures pictures(std::uint64_t seed, std::int64_t samples) {
  LabelledPictures set;
  set.pictures = torch::empty({samples, kSize, kSize, 3}, torch::kUInt8);
  auto* values = set.pictures.data_ptr<std::uint8_t>();
  for (std::int64_t i = 0; i < samples; ++i) {
    Random random(seed, Purpose("test/picture"), static_cast<std::uint64_t>(i));
    const std::uint64_t number = random.below(8);
    std::array<float, 3> colour;
    for (std::size_t channel = 0; channel < 3; ++channel) {
      colour[channel] =
          128 + ((number >> channel & 1) == 1 ? 30.0f : -30.0f) + 30 * random.normal();
    }
    for (int pixel = 0; pixel < kSize * kSize; ++pixel) {
      for (const float strength : colour) {
        *values++ =
            static_cast<std::uint8_t>(std::clamp(strength + 20 * random.normal(), 0.0f, 255.0f));
      }
    }
    set.labels.push_back(std::to_string(number));
  }
  return set;
}

// A network that has learned a little, so that its statistics and weights are not those of the
// start.
class ProbeReference : public TempFolder {
 protected:
  ProbeReference() {
    LearnerConfig config;
    config.model = {.arch = Arch::resnet10,
                    .stem = Stem::stride2,
                    .width = 8,
                    .projector_out = 64,
                    .predictor_hidden = 16};
    config.augment.size = kSize;
    config.buffer.policy = "reservoir";
    config.buffer.capacity = "64";
    config.train.batch = 32;
    config.train.max_updates = 20;
    config.train.threads = 1;
    stream_ = open_stream(cat("synthetic:?frames=4&size=", kSize));
    learner_ = std::make_unique<Learner>(config, *stream_);
    while (learner_->advance()) {
    }
  }

  void SetUp() override {
    if (std::string(RIFFLE_PYTHON).empty() || !std::filesystem::exists(RIFFLE_PYTHON)) {
      GTEST_SKIP() << "needs a Python with torch; none was found at configure time";
    }
  }

  nlohmann::json theirs(const LinearRecipe& lars) {
    const auto classes = class_labels(train_.labels, val_.labels);
    NamedTensors tensors = {{"train", train_.pictures},
                            {"val", val_.pictures},
                            {"train_classes", classes.train},
                            {"val_classes", classes.val}};
    const std::string encoder = "encoder.";
    for (const auto& [name, tensor] : save_state(learner_->objective())) {
      if (name.starts_with(encoder)) tensors.emplace_back(name.substr(encoder.size()), tensor);
    }
    write_safetensors(folder_ / "in.safetensors", tensors);
    const std::string command = cat(
        "LD_PRELOAD= '", RIFFLE_PYTHON, "' '", RIFFLE_SOURCE_DIR,
        "/riffle/eval/testdata/probe_reference.py' '", (folder_ / "in.safetensors").string(), "' ",
        lars.epochs, ' ', lars.lr, ' ', lars.batch, " >'", (folder_ / "out.json").string(), "'");
    if (std::system(command.c_str()) != 0) throw std::runtime_error("failed: " + command);
    std::ifstream out(folder_ / "out.json");
    return nlohmann::json::parse(out);
  }

  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Learner> learner_;
  LabelledPictures train_ = pictures(11, 2000);
  LabelledPictures val_ = pictures(12, 4000);
};

TEST_F(ProbeReference, AccuraciesAgreeWithinHalfAPoint) {
  auto lars = linear_recipe("inaturalist");
  lars.batch = 64;  // so that a small set makes as many steps as LARS needs
  const auto expected = theirs(lars);
  const auto ridge = probe(learner_->objective(), train_, val_, linear_recipe("cached"));
  const auto cropped = probe(learner_->objective(), train_, val_, lars);
  EXPECT_NEAR(ridge.linear_top1, expected["ridge"], 0.5);
  EXPECT_NEAR(cropped.linear_top1, expected["lars"], 0.5);
  EXPECT_NEAR(ridge.knn_top1, expected["knn"], 0.5);
  for (const double accuracy : {ridge.linear_top1, cropped.linear_top1, ridge.knn_top1}) {
    EXPECT_GT(accuracy, 30) << "chance is 12.5";
    EXPECT_LT(accuracy, 97);
  }
}

}  // namespace
}  // namespace riffle
