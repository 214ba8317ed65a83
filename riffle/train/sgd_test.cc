#include "riffle/train/sgd.h"

#include <set>
#include <string>

#include <gtest/gtest.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>

#include "riffle/base/error.h"
#include "riffle/model/init.h"
#include "riffle/model/state.h"

namespace riffle {
namespace {

// A few parameters of the shapes and layouts that matter, and a predictor of one.
class Toy : public torch::nn::Module {
 public:
  explicit Toy(std::uint64_t seed) {
    const Init init(seed);
    conv_ = register_parameter("conv", init.kaiming_normal("conv", {6, 3, 3, 3}));
    linear_ = register_parameter("linear", init.linear_uniform("linear", {5, 4}, 4));
    predictor_ = register_parameter("predictor", init.linear_uniform("predictor", {4, 4}, 4));
  }
  torch::Tensor loss() const {
    return conv_.pow(3).sum() + (linear_.matmul(predictor_)).pow(2).sum();
  }
  std::vector<torch::Tensor> predictor_parameters() const { return {predictor_}; }

 private:
  torch::Tensor conv_, linear_, predictor_;
};

TrainConfig config(double momentum, double weight_decay) {
  TrainConfig config;
  config.momentum = momentum;
  config.weight_decay = weight_decay;
  return config;
}

void train(Toy& toy, Sgd& sgd, int steps, double lr, double predictor_lr) {
  for (int i = 0; i < steps; ++i) {
    toy.loss().backward();
    sgd.step(lr, predictor_lr);
  }
}

void expect_equal(const NamedTensors& a, const NamedTensors& b, double tolerance = 0.0) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_TRUE(torch::allclose(a[i].second, b[i].second, tolerance, tolerance)) << a[i].first;
  }
}

TEST(Sgd, UpdatesAsTorchsOwnOptimiser) {
  for (const double momentum : {0.0, 0.9}) {
    for (const double weight_decay : {0.0, 0.01}) {
      Toy ours(1);
      Toy theirs(1);
      Sgd sgd(ours, ours.predictor_parameters(), config(momentum, weight_decay));
      train(ours, sgd, 4, 0.05, 0.05);
      torch::optim::SGD reference(
          theirs.parameters(),
          torch::optim::SGDOptions(0.05).momentum(momentum).weight_decay(weight_decay));
      for (int i = 0; i < 4; ++i) {
        reference.zero_grad();
        theirs.loss().backward();
        reference.step();
      }
      expect_equal(save_state(ours), save_state(theirs), 1e-6);
    }
  }
}

TEST(Sgd, ThePredictorHasItsOwnRate) {
  Toy toy(1);
  const NamedTensors before = save_state(toy);
  Sgd sgd(toy, toy.predictor_parameters(), config(0.9, 0.0));
  train(toy, sgd, 1, 0.0, 0.1);
  const NamedTensors after = save_state(toy);
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(torch::equal(before[i].second, after[i].second), before[i].first != "predictor");
  }
}

TEST(Sgd, AStepDropsTheGradients) {
  Toy toy(1);
  Sgd sgd(toy, toy.predictor_parameters(), TrainConfig());
  train(toy, sgd, 1, 0.1, 0.1);
  for (const auto& parameter : toy.parameters()) EXPECT_FALSE(parameter.grad().defined());
  EXPECT_THROW(sgd.step(0.1, 0.1), std::logic_error);
}

TEST(Sgd, AParameterThatRequiresNoGradientStaysAsItIsUntilItDoes) {
  Toy toy(1);
  torch::Tensor sleeper = toy.named_parameters()["conv"];
  sleeper.requires_grad_(false);
  const torch::Tensor before = sleeper.clone();
  Sgd sgd(toy, toy.predictor_parameters(), config(0.9, 0.1));
  train(toy, sgd, 3, 0.1, 0.1);
  EXPECT_TRUE(torch::equal(sleeper, before));
  const auto moved = [&sgd] {
    std::set<std::string> names;
    for (const auto& [name, momentum] : sgd.state()) {
      if (momentum.count_nonzero().item<std::int64_t>() > 0) names.insert(name);
    }
    return names;
  };
  EXPECT_EQ(moved(), (std::set<std::string>{"linear", "predictor"}));
  sleeper.requires_grad_(true);
  train(toy, sgd, 1, 0.1, 0.1);
  EXPECT_FALSE(torch::equal(sleeper, before));
  EXPECT_EQ(moved().size(), 3u);
}

TEST(Sgd, AGradientInAnotherLayoutIsRead) {
  Toy ours(1);
  Toy theirs(1);
  Sgd one(ours, ours.predictor_parameters(), config(0.9, 0.0));
  Sgd two(theirs, theirs.predictor_parameters(), config(0.9, 0.0));
  ours.loss().backward();
  theirs.loss().backward();
  torch::Tensor& gradient = ours.named_parameters()["conv"].mutable_grad();
  ASSERT_TRUE(gradient.is_contiguous(torch::MemoryFormat::ChannelsLast));
  gradient = gradient.contiguous();
  one.step(0.1, 0.1);
  two.step(0.1, 0.1);
  expect_equal(save_state(ours), save_state(theirs));
}

TEST(Sgd, ContinuesExactlyFromItsSavedState) {
  Toy whole(1);
  Sgd straight(whole, whole.predictor_parameters(), TrainConfig());
  train(whole, straight, 5, 0.05, 0.02);

  Toy first(1);
  Sgd before(first, first.predictor_parameters(), TrainConfig());
  train(first, before, 2, 0.05, 0.02);
  Toy second(9);
  load_state(second, save_state(first));
  Sgd after(second, second.predictor_parameters(), TrainConfig());
  after.load_state(before.state());
  train(second, after, 3, 0.05, 0.02);
  expect_equal(save_state(second), save_state(whole));
  expect_equal(after.state(), straight.state());
}

TEST(Sgd, AStateOfOtherParametersIsRefused) {
  Toy toy(1);
  Sgd sgd(toy, toy.predictor_parameters(), TrainConfig());
  NamedTensors state = sgd.state();
  EXPECT_EQ(state.size(), 3u);
  state[0].first = "other";
  EXPECT_THROW(sgd.load_state(state), Error);
}

}  // namespace
}  // namespace riffle
