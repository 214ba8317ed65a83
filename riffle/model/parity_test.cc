// The whole model held against an independent implementation in Python torch, run by the test.
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "riffle/base/random.h"
#include "riffle/base/testing/temp_folder.h"
#include "riffle/base/text.h"
#include "riffle/model/objective.h"
#include "riffle/model/state.h"
#include "riffle/tensors/safetensors.h"

namespace riffle {
namespace {

constexpr double kTolerance = 1e-4;
constexpr double kRate = 0.05;
constexpr double kMomentum = 0.9;
constexpr double kWeightDecay = 1e-4;
constexpr int kSteps = 3;
constexpr std::uint64_t kSeed = 3;

struct ParityCase {
  const char* name;
  const char* arch;
  const char* stem;
  ModelConfig model;
  std::int64_t batch;
  std::int64_t size;
};

void PrintTo(const ParityCase& c, std::ostream* out) { *out << c.name; }

ModelConfig config(Arch arch, Stem stem, const std::string& objective = "simsiam") {
  return {.objective = objective,
          .arch = arch,
          .stem = stem,
          .width = 16,
          .projector_hidden = arch == Arch::resnet10 ? 96 : 0,
          .projector_out = 64,
          .predictor_hidden = 24,
          .visreg_slices = 48};
}

ParityCase method(const char* name, const std::string& objective) {
  return {name, "resnet10", "stride2", config(Arch::resnet10, Stem::stride2, objective), 16, 32};
}

std::string settings(const ModelConfig& model) {
  return cat("{\"seed\": ", kSeed, ", \"temperature\": ", model.temperature,
             ", \"ema\": ", model.ema, ", \"vicreg_invariance\": ", model.vicreg_invariance,
             ", \"vicreg_variance\": ", model.vicreg_variance,
             ", \"vicreg_covariance\": ", model.vicreg_covariance,
             ", \"visreg_invariance\": ", model.visreg_invariance,
             ", \"visreg_regulariser\": ", model.visreg_regulariser,
             ", \"visreg_slices\": ", model.visreg_slices, "}");
}

torch::Tensor parity_pictures(const ParityCase& c, std::uint64_t position) {
  torch::Tensor pictures = torch::empty({c.batch, 3, c.size, c.size});
  Random random(7, Purpose("parity"), position);
  for (std::int64_t i = 0; i < pictures.numel(); ++i) {
    pictures.data_ptr<float>()[i] = random.normal();
  }
  return pictures;
}

// The class tokens of a transformer are nearly the same at first, whatever the pictures, and batch
// norm would enlarge the rounding of their small differences.
void spread_tokens(torch::nn::Module& module) {
  const torch::NoGradGuard no_gradient;
  for (auto& item : module.named_parameters()) {
    if (item.key().starts_with("encoder.") && item.value().dim() > 1) item.value().mul_(6);
  }
}

// A last scale of zero would hide the inside of every block from the loss.
void wake_residuals(torch::nn::Module& module) {
  const torch::NoGradGuard no_gradient;
  std::uint64_t position = 0;
  for (auto& item : module.named_parameters()) {
    if (item.value().dim() != 1) continue;
    Random random(7, Purpose("parity/norm"), position++);
    for (std::int64_t i = 0; i < item.value().numel(); ++i) {
      item.value().data_ptr<float>()[i] += random.uniform(0.1f, 0.6f);
    }
  }
}

std::vector<ParityCase> parity_cases() {
  return {
      {"Resnet18Small", "resnet18", "small", config(Arch::resnet18, Stem::small), 8, 32},
      {"Resnet50Standard", "resnet50", "standard", config(Arch::resnet50, Stem::standard), 8, 64},
      {"VitSmall", "vit-s", "small", config(Arch::vit_s, Stem::small), 8, 32},
      method("SimSiam", "simsiam"),
      method("SimClr", "simclr"),
      method("Byol", "byol"),
      method("VicReg", "vicreg"),
      method("VisReg", "visreg")};
}

std::shared_ptr<Objective> parity_objective(const ParityCase& c) {
  const auto objective = make_objective(c.model, kSeed);
  wake_residuals(*objective);
  if (is_transformer(c.model.arch)) spread_tokens(*objective);
  return objective;
}

// What the other implementation makes of all cases, at once: Python takes seconds to load torch.
struct ParityReference : TempFolder {
  ParityReference() {
    std::string command = cat("LD_PRELOAD= '", RIFFLE_PYTHON, "' '", RIFFLE_SOURCE_DIR,
                              "/riffle/model/testdata/objective_reference.py'");
    for (const ParityCase& c : parity_cases()) {
      NamedTensors input = save_state(*parity_objective(c));
      input.emplace_back("view1", parity_pictures(c, 1));
      input.emplace_back("view2", parity_pictures(c, 2));
      const auto in = folder_ / cat(c.name, ".in");
      write_safetensors(in, input);
      command += cat(" '", in.string(), "' '", output(c).string(), "' ", c.arch, " ", c.stem, " ",
                     kSteps, " ", kRate, " ", c.model.objective, " '", settings(c.model), "'");
    }
    if (std::system(command.c_str()) != 0) throw std::runtime_error("failed: " + command);
  }
  void TestBody() override {}

  std::filesystem::path output(const ParityCase& c) const { return folder_ / cat(c.name, ".out"); }
};

class Parity : public testing::TestWithParam<ParityCase> {
 protected:
  static void SetUpTestSuite() {
    const std::string python = RIFFLE_PYTHON;
    if (python.empty() || !std::filesystem::exists(python)) return;
    reference_ = std::make_unique<ParityReference>();
  }
  static void TearDownTestSuite() { reference_.reset(); }
  void SetUp() override {
    if (!reference_) GTEST_SKIP() << "needs a Python with torch; none was found at configure time";
  }

  static std::map<std::string, torch::Tensor> reference() {
    const Safetensors file = read_safetensors(reference_->output(GetParam()));
    return {file.tensors.begin(), file.tensors.end()};
  }

 private:
  inline static std::unique_ptr<ParityReference> reference_;
};

void expect_close(const std::string& name, const torch::Tensor& ours, const torch::Tensor& theirs) {
  ASSERT_EQ(ours.sizes(), theirs.sizes()) << name;
  const torch::Tensor a = ours.detach().to(torch::kFloat64);
  const torch::Tensor b = theirs.to(torch::kFloat64);
  const double difference = (a - b).norm().item<double>();
  // Some running means are zero but for rounding, the predictor's for one: its inputs are centred.
  // So is the gradient of a bias that the next batch norm takes away again. A loss that is a mean
  // of cosines may be next to nothing.
  const bool zero = name == "loss" || name.find("running_mean") != std::string::npos ||
                    name.find("encoder.norm.bias") != std::string::npos;
  const double floor = zero ? 1e-6 : 1e-9;
  EXPECT_LE(difference, kTolerance * b.norm().item<double>() + floor) << name;
}

// The update rule as the reference states it, without riffle's optimiser (which stands in a room
// below).
void sgd_step(std::map<std::string, torch::Tensor>& momenta, torch::nn::Module& module) {
  const torch::NoGradGuard no_gradient;
  for (auto& item : module.named_parameters()) {
    if (!item.value().requires_grad()) continue;
    const torch::Tensor gradient = item.value().grad() + kWeightDecay * item.value();
    torch::Tensor& momentum = momenta[item.key()];
    momentum = momentum.defined() ? kMomentum * momentum + gradient : gradient;
    item.value().sub_(kRate * momentum);
    item.value().mutable_grad().reset();
  }
}

TEST_P(Parity, ValuesLossGradientsAndThreeUpdatesAreThoseOfAnIndependentImplementation) {
  const ParityCase& c = GetParam();
  const auto objective = parity_objective(c);
  const torch::Tensor view1 = parity_pictures(c, 1);
  const torch::Tensor view2 = parity_pictures(c, 2);
  const auto expected = reference();

  expect_close("encoded", objective->encode(view1), expected.at("encoded"));
  expect_close("arrival", objective->features(view1), expected.at("arrival"));
  std::map<std::string, torch::Tensor> momenta;
  for (int step = 0; step < kSteps; ++step) {
    const ObjectiveOutput output = objective->forward(torch::cat({view1, view2}));
    output.loss.backward();
    if (step == 0) {
      expect_close("loss", output.loss, expected.at("loss"));
      expect_close("features", output.features, expected.at("features"));
      expect_close("std", output.std, expected.at("std"));
      for (const auto& item : objective->named_parameters()) {
        const bool followed = item.key().starts_with("target.");
        ASSERT_EQ(item.value().requires_grad(), !followed) << item.key();
        if (!followed)
          expect_close("gradient of " + item.key(), item.value().grad(),
                       expected.at("gradient/" + item.key()));
      }
    }
    sgd_step(momenta, *objective);
    objective->after_step();
  }
  for (const auto& [name, tensor] : save_state(*objective)) {
    expect_close(name + " after training", tensor, expected.at("after/" + name));
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Parity, testing::ValuesIn(parity_cases()),
                         [](const testing::TestParamInfo<ParityCase>& model) {
                           return std::string(model.param.name);
                         });

}  // namespace
}  // namespace riffle
