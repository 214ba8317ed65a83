#include "riffle/model/state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "riffle/base/error.h"
#include "riffle/model/layers.h"

namespace riffle {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

class TwoLayers : public torch::nn::Module {
 public:
  explicit TwoLayers(std::uint64_t seed) {
    register_module("linear", std::make_shared<Linear>(Init(seed).at("linear"), 3, 5, true));
    register_module("norm", std::make_shared<BatchNorm>(5));
  }
};

bool equal(const NamedTensors& a, const NamedTensors& b) {
  bool same = a.size() == b.size();
  for (std::size_t i = 0; same && i < a.size(); ++i) {
    same = a[i].first == b[i].first && torch::equal(a[i].second, b[i].second);
  }
  return same;
}

TEST(State, WhatWasSavedIsLoaded) {
  TwoLayers from(1);
  TwoLayers to(2);
  const NamedTensors state = save_state(from);
  EXPECT_EQ(state.size(), 7u);
  EXPECT_FALSE(equal(save_state(to), state));
  load_state(to, state);
  EXPECT_TRUE(equal(save_state(to), state));
}

TEST(State, ASavedStateIsACopy) {
  TwoLayers layers(1);
  const NamedTensors state = save_state(layers);
  const torch::Tensor before = state[0].second.clone();
  const torch::NoGradGuard no_gradient;
  layers.parameters()[0].zero_();
  EXPECT_TRUE(torch::equal(state[0].second, before));
  EXPECT_FALSE(state[0].second.requires_grad());
}

TEST(State, AWrongStateIsRefusedByNameAndChangesNothing) {
  TwoLayers layers(1);
  const NamedTensors good = save_state(TwoLayers(2));
  const NamedTensors before = save_state(layers);

  NamedTensors missing = good;
  missing.erase(missing.begin() + 1);
  EXPECT_THAT([&] { load_state(layers, missing); },
              ThrowsMessage<Error>(AllOf(HasSubstr("'linear.bias'"), HasSubstr("missing"))));

  NamedTensors unexpected = good;
  unexpected.emplace_back("fc.weight", torch::zeros({1}));
  EXPECT_THAT([&] { load_state(layers, unexpected); },
              ThrowsMessage<Error>(HasSubstr("'fc.weight'")));

  NamedTensors twice = good;
  twice.push_back(good[0]);
  EXPECT_THAT([&] { load_state(layers, twice); }, ThrowsMessage<Error>(HasSubstr("twice")));

  NamedTensors reshaped = good;
  reshaped[0].second = torch::zeros({3, 5});
  EXPECT_THAT([&] { load_state(layers, reshaped); },
              ThrowsMessage<Error>(
                  AllOf(HasSubstr("'linear.weight'"), HasSubstr("[3, 5]"), HasSubstr("[5, 3]"))));
  EXPECT_TRUE(equal(save_state(layers), before));
}

}  // namespace
}  // namespace riffle
