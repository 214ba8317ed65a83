// Exports opened by the tools they are for: safetensors and torch, ONNX's checker and ONNX Runtime.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>
#include <torch/types.h>

#include "riffle/base/error.h"
#include "riffle/base/file.h"
#include "riffle/base/random.h"
#include "riffle/base/testing/temp_folder.h"
#include "riffle/base/text.h"
#include "riffle/model/encoder_weights.h"
#include "riffle/model/onnx.h"
#include "riffle/tensors/safetensors.h"

namespace riffle {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr int kPackageMissing = 77;  // an exit code of the script

struct ExportCase {
  const char* name;
  const char* arch;
  const char* stem;
  ModelConfig model;
};

const std::vector<ExportCase>& cases() {
  static const std::vector<ExportCase> all = {
      {"a", "resnet18", "standard", {.arch = Arch::resnet18, .stem = Stem::standard, .width = 64}},
      {"b", "resnet50", "standard", {.arch = Arch::resnet50, .stem = Stem::standard, .width = 16}},
      {"c", "resnet18", "small", {.arch = Arch::resnet18, .stem = Stem::small, .width = 8}},
      {"d", "resnet10", "stride2", {.arch = Arch::resnet10, .stem = Stem::stride2, .width = 8}}};
  return all;
}

// As after training: every block does something, and statistics are those of no layer at its start.
std::shared_ptr<Objective> trained(ModelConfig model, std::uint64_t seed = 5) {
  model.projector_out = 8;
  model.predictor_hidden = 4;
  const auto objective = make_objective(model, seed);
  NamedTensors state = save_state(*objective);
  for (std::size_t i = 0; i < state.size(); ++i) {
    auto& [name, tensor] = state[i];
    if (tensor.dim() != 1 || tensor.scalar_type() != torch::kFloat32) continue;
    Random random(seed, Purpose("export test"), i);
    for (std::int64_t c = 0; c < tensor.numel(); ++c) {
      tensor.data_ptr<float>()[c] += random.uniform(0.05f, 0.5f);
    }
  }
  load_state(*objective, state);
  return objective;
}

torch::Tensor pictures() {
  torch::Tensor values = torch::empty({5, 3, 48, 40});
  Random random(3, Purpose("export test/pictures"), 0);
  for (std::int64_t i = 0; i < values.numel(); ++i) values.data_ptr<float>()[i] = random.normal();
  return values;
}

class ExportTest : public TempFolder {};

TEST_F(ExportTest, TorchAndOnnxRuntimeGiveTheSameFeatures) {
  if (std::string(RIFFLE_PYTHON).empty()) GTEST_SKIP() << "needs a Python (scripts/setup --peers)";
  std::string command = cat("LD_PRELOAD= '", RIFFLE_PYTHON, "' '", RIFFLE_SOURCE_DIR,
                            "/riffle/model/testdata/open_exports.py' '", folder_.string(), "'");
  for (const auto& c : cases()) {
    const auto objective = trained(c.model);
    const EncoderWeights weights = encoder_weights(*objective, c.model, 48);
    write_encoder(folder_ / cat(c.name, ".safetensors"), weights);
    write_onnx(folder_ / cat(c.name, ".onnx"), weights);
    write_safetensors(folder_ / cat(c.name, ".io.safetensors"),
                      {{"pictures", pictures()}, {"features", objective->encode(pictures())}});
    command += cat(' ', c.name, ',', c.arch, ',', c.stem, ',', c.model.width);
  }
  FILE* pipe = popen(command.c_str(), "r");
  std::string out;
  for (int c; (c = std::fgetc(pipe)) != EOF;) out.push_back(static_cast<char>(c));
  const int code = WEXITSTATUS(pclose(pipe));
  if (code == kPackageMissing) {
    GTEST_SKIP() << "needs torch, safetensors, onnx and onnxruntime in " << RIFFLE_PYTHON
                 << " (scripts/setup --peers)";
  }
  ASSERT_EQ(code, 0) << command;
  const auto report = nlohmann::json::parse(out);
  for (const auto& c : cases()) {
    const auto& found = report.at(c.name);
    EXPECT_EQ(found["missing"], nlohmann::json({"fc.weight", "fc.bias"})) << c.arch;
    EXPECT_EQ(found["unexpected"], nlohmann::json::array()) << c.arch;
    const double scale = std::max(1.0, found["largest"].get<double>());
    EXPECT_GT(found["largest"].get<double>(), 0.1) << "features of zero would agree with anything";
    EXPECT_LE(found["torch"].get<double>(), 1e-5 * scale) << c.arch << ' ' << c.stem;
    EXPECT_LE(found["onnx"].get<double>(), 1e-4 * scale) << c.arch << ' ' << c.stem;
    EXPECT_EQ(found["metadata"]["stem"], c.stem);
    EXPECT_EQ(found["metadata"]["size"], "48");
  }
}

TEST_F(ExportTest, WhatWasWrittenIsReadBackWithItsArchitecture) {
  for (const ExportCase& c : {cases()[2], cases()[3]}) {
    const auto objective = trained(c.model);
    const fs::path path = folder_ / cat(c.name, ".safetensors");
    write_encoder(path, encoder_weights(*objective, c.model, 32));
    const EncoderWeights read = read_encoder(path);
    EXPECT_EQ(read.architecture(), cat(c.arch, ", stem ", c.stem, ", width ", c.model.width));
    EXPECT_EQ(read.size, 32);
    EXPECT_TRUE(
        torch::equal(make_encoder(read)->encode(pictures()), objective->encode(pictures())));
  }
}

TEST_F(ExportTest, AModelStartsFromAnyFileWithTorchvisionsNames) {
  const ModelConfig model = cases()[1].model;
  EncoderWeights weights = encoder_weights(*trained(model), model, 0);
  NamedTensors foreign = {{"fc.weight", torch::zeros({1000, 512})},
                          {"fc.bias", torch::zeros(1000)}};
  for (const auto& [name, tensor] : weights.tensors) {
    if (!name.ends_with("num_batches_tracked")) foreign.emplace_back(name, tensor);
  }
  write_safetensors(folder_ / "foreign.safetensors", foreign);
  ModelConfig started = model;
  started.init = folder_ / "foreign.safetensors";
  EXPECT_TRUE(torch::equal(make_objective(started, 77)->encode(pictures()),
                           trained(model)->encode(pictures())));
}

void expect_refused(const std::function<void()>& act, const std::string& words) {
  try {
    act();
    ADD_FAILURE() << "accepted; expected: " << words;
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr(words));
  }
}

TEST_F(ExportTest, WeightsThatDoNotFitAreRefusedWithWhatTheyAre) {
  const ExportCase& c = cases()[3];
  const fs::path path = folder_ / "d.safetensors";
  EncoderWeights weights = encoder_weights(*trained(c.model), c.model, 0);
  write_encoder(path, weights);
  ModelConfig other = c.model;
  other.width = 16;
  other.init = path;
  expect_refused([&] { make_objective(other, 0); }, "--arch resnet10 --stem stride2 --width 8");
  other.init = folder_ / "absent.safetensors";
  expect_refused([&] { make_objective(other, 0); }, "absent.safetensors");

  write_safetensors(path, weights.tensors);
  expect_refused([&] { read_encoder(path); }, "metadata must say arch");
  write_safetensors(path, weights.tensors, {{"arch", "resnet10"}, {"width", "8"}});
  expect_refused([&] { read_encoder(path); }, "metadata must say arch, stem and width");
  write_safetensors(path, {{"features", torch::zeros({3, 4})}});
  expect_refused([&] { read_encoder(path); }, "no 'conv1.weight'");

  auto metadata = weights.metadata();
  for (const char* width : {"1024", "9223372036854775807", "0", "-8"}) {
    metadata["width"] = width;
    write_safetensors(path, weights.tensors, metadata);
    expect_refused([&] { read_encoder(path); }, "'layer4.0.conv2.weight' has shape [64, 64, 3, 3]");
  }
  weights.tensors.emplace_back("layer1.0.conv1.weight.more", torch::zeros({1}));
  write_encoder(path, weights);
  expect_refused([&] { make_encoder(read_encoder(path)); }, "is not a part of");
  weights.tensors.pop_back();

  ModelConfig model = c.model;
  weights.tensors.pop_back();
  weights.tensors.front().second = torch::zeros({1});
  write_encoder(path, weights);
  expect_refused([&] { make_encoder(read_encoder(path)); }, "conv1.weight");
}

}  // namespace
}  // namespace riffle
