#include "riffle/model/resnet.h"

#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "riffle/model/state.h"

namespace riffle {
namespace {

ResNet make(Arch arch, Stem stem = Stem::standard, std::int64_t width = 64,
            std::uint64_t seed = 1) {
  return ResNet({.arch = arch, .stem = stem, .width = width}, Init(seed));
}

std::int64_t parameter_count(const ResNet& net) {
  std::int64_t count = 0;
  for (const auto& parameter : net.parameters()) count += parameter.numel();
  return count;
}

TEST(ResNet, HasAsManyParametersAsTorchvisionsWithoutTheClassifier) {
  EXPECT_EQ(parameter_count(make(Arch::resnet18)), 11'176'512);
  EXPECT_EQ(parameter_count(make(Arch::resnet50)), 23'508'032);
}

TEST(ResNet, NamesAreTorchvisions) {
  std::set<std::string> names;
  for (const auto& [name, tensor] : save_state(make(Arch::resnet18, Stem::standard, 8))) {
    names.insert(name);
  }
  std::set<std::string> expected;
  const auto norm = [&](const std::string& path) {
    for (const char* part :
         {"weight", "bias", "running_mean", "running_var", "num_batches_tracked"}) {
      expected.insert(path + "." + part);
    }
  };
  expected.insert("conv1.weight");
  norm("bn1");
  for (const std::string stage : {"layer1", "layer2", "layer3", "layer4"}) {
    for (const std::string block : {".0.", ".1."}) {
      for (const std::string part : {"1", "2"}) {
        expected.insert(stage + block + "conv" + part + ".weight");
        norm(stage + block + "bn" + part);
      }
    }
    if (stage != "layer1") {
      expected.insert(stage + ".0.downsample.0.weight");
      norm(stage + ".0.downsample.1");
    }
  }
  EXPECT_EQ(names, expected);

  std::set<std::string> deep;
  for (const auto& item : make(Arch::resnet50, Stem::standard, 4).named_parameters()) {
    deep.insert(item.key());
  }
  EXPECT_THAT(deep, testing::IsSupersetOf({"layer1.0.downsample.0.weight", "layer1.0.conv3.weight",
                                           "layer1.0.bn3.bias", "layer2.3.conv1.weight",
                                           "layer3.5.conv2.weight", "layer4.2.bn3.weight"}));
  EXPECT_EQ(deep.size(), 159u);
}

TEST(ResNet, EachStemGivesPooledFeaturesOfItsArchitecturesWidth) {
  const torch::NoGradGuard no_gradient;
  for (const Stem stem : {Stem::standard, Stem::small, Stem::stride2}) {
    for (const Arch arch : {Arch::resnet10, Arch::resnet18, Arch::resnet50}) {
      const ResNet net = make(arch, stem, 8);
      const torch::Tensor y = net.forward(torch::ones({2, 3, 40, 32}), {});
      EXPECT_EQ(y.sizes(), (std::vector<std::int64_t>{2, net.features()}));
      EXPECT_EQ(net.features(), arch == Arch::resnet50 ? 256 : 64);
    }
  }
}

TEST(ResNet, StemsDifferInKernelAndStride) {
  const auto kernel = [](Stem stem) {
    return make(Arch::resnet10, stem, 4).parameters()[0].size(2);
  };
  EXPECT_EQ(kernel(Stem::standard), 7);
  EXPECT_EQ(kernel(Stem::small), 3);
  EXPECT_EQ(kernel(Stem::stride2), 3);
}

TEST(ResNet, BlocksStartAsTheIdentity) {
  for (const Arch arch : {Arch::resnet18, Arch::resnet50}) {
    const std::string last = arch == Arch::resnet50 ? ".bn3.weight" : ".bn2.weight";
    int zeros = 0;
    for (const auto& item : make(arch, Stem::small, 4).named_parameters()) {
      if (item.value().dim() != 1) continue;
      const bool scale = item.key().ends_with("weight");
      const bool ends_block = item.key().starts_with("layer") && item.key().ends_with(last);
      EXPECT_TRUE((item.value() == (scale && !ends_block ? 1.0 : 0.0)).all().item<bool>())
          << item.key();
      zeros += ends_block;
    }
    EXPECT_EQ(zeros, arch == Arch::resnet50 ? 16 : 8);
  }
}

TEST(ResNet, ConvolutionsStartNormalWithTheVarianceOfTheirOutputs) {
  for (const auto& item : make(Arch::resnet18).named_parameters()) {
    const torch::Tensor& weight = item.value();
    if (weight.dim() != 4 || weight.numel() < 30'000) continue;
    const double variance =
        2.0 / static_cast<double>(weight.size(0) * weight.size(2) * weight.size(3));
    const double found = weight.detach().var().item<double>();
    EXPECT_NEAR(found / variance, 1.0, 0.05) << item.key();
    EXPECT_NEAR(weight.detach().mean().item<double>() / std::sqrt(variance), 0.0, 0.05)
        << item.key();
    const double kurtosis = (weight.detach() / std::sqrt(variance)).pow(4).mean().item<double>();
    EXPECT_NEAR(kurtosis, 3.0, 0.3) << item.key();
  }
}

TEST(ResNet, WeightsDependOnTheSeedAlone) {
  torch::manual_seed(1);
  const NamedTensors first = save_state(make(Arch::resnet10, Stem::small, 8, 5));
  torch::manual_seed(2);
  const int threads = torch::get_num_threads();
  torch::set_num_threads(threads == 1 ? 2 : 1);
  const NamedTensors second = save_state(make(Arch::resnet10, Stem::small, 8, 5));
  torch::set_num_threads(threads);
  const NamedTensors other = save_state(make(Arch::resnet10, Stem::small, 8, 6));
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_TRUE(torch::equal(first[i].second, second[i].second)) << first[i].first;
    if (first[i].second.dim() == 4) {
      EXPECT_FALSE(torch::equal(first[i].second, other[i].second)) << first[i].first;
    }
  }
}

TEST(ResNet, WeightsAreChannelsLast) {
  for (const auto& item : make(Arch::resnet10, Stem::standard, 8).named_parameters()) {
    if (item.value().dim() != 4) continue;
    EXPECT_TRUE(item.value().is_contiguous(torch::MemoryFormat::ChannelsLast)) << item.key();
  }
}

torch::Tensor noise(std::int64_t pictures) {
  torch::manual_seed(3);
  return torch::randn({pictures, 3, 32, 32});
}

constexpr Pass kTraining{.training = true, .views = 2};

std::set<std::string> sleeping_blocks(const ResNet& net) {
  std::set<std::string> blocks;
  for (const auto& item : net.named_parameters()) {
    if (!item.value().requires_grad()) blocks.insert(item.key().substr(0, sizeof("layer1.0") - 1));
  }
  return blocks;
}

TEST(ResNetGrowth, BlocksWakeFromTheLastStageToTheFirstRoundByRound) {
  ResNet net = make(Arch::resnet50, Stem::small, 4);
  EXPECT_THAT(sleeping_blocks(net), testing::IsEmpty());
  ASSERT_EQ(net.blocks_to_grow(), 12);
  net.set_grown(0);
  std::set<std::string> asleep = sleeping_blocks(net);
  EXPECT_EQ(asleep.size(), 12u);
  int grown = 0;
  for (const char* block :
       {"layer4.1", "layer3.1", "layer2.1", "layer1.1", "layer4.2", "layer3.2", "layer2.2",
        "layer1.2", "layer3.3", "layer2.3", "layer3.4", "layer3.5"}) {
    net.set_grown(++grown);
    EXPECT_EQ(asleep.erase(block), 1u);
    EXPECT_EQ(sleeping_blocks(net), asleep) << block;
  }
  EXPECT_EQ(make(Arch::resnet18, Stem::small, 4).blocks_to_grow(), 4);
  EXPECT_EQ(make(Arch::resnet10, Stem::small, 4).blocks_to_grow(), 0);
}

TEST(ResNetGrowth, WakingABlockThatNeverTrainedChangesNoBitOfTheOutput) {
  const torch::NoGradGuard no_gradient;
  for (const Arch arch : {Arch::resnet18, Arch::resnet50}) {
    ResNet net = make(arch, Stem::stride2, 4);
    net.set_grown(0);
    const torch::Tensor trained = net.forward(noise(8), kTraining);
    for (int grown = 1; grown <= net.blocks_to_grow(); ++grown) {
      const torch::Tensor evaluated = net.forward(noise(8), {});
      net.set_grown(grown);
      EXPECT_TRUE(torch::equal(net.forward(noise(8), {}), evaluated)) << grown;
      EXPECT_TRUE(torch::equal(net.forward(noise(8), kTraining), trained)) << grown;
    }
  }
}

TEST(ResNetGrowth, WithOneBlockAStageItIsTheSmallerNetwork) {
  ResNet growing = make(Arch::resnet18, Stem::stride2, 4);
  growing.set_grown(0);
  const ResNet small = make(Arch::resnet10, Stem::stride2, 4);
  const torch::Tensor trained = growing.forward(noise(8), kTraining);
  EXPECT_TRUE(torch::equal(trained, small.forward(noise(8), kTraining)));
  trained.sum().backward();
  for (const auto& item : growing.named_parameters()) {
    EXPECT_EQ(item.value().grad().defined(), item.value().requires_grad()) << item.key();
  }
  const torch::NoGradGuard no_gradient;
  EXPECT_TRUE(torch::equal(growing.forward(noise(8), {}), small.forward(noise(8), {})))
      << "evaluation runs the sleeping blocks too, whose statistics no training has moved";
}

TEST(ResNetGrowth, FullyGrownItIsTheNetworkItself) {
  ResNet growing = make(Arch::resnet18, Stem::stride2, 4);
  growing.set_grown(0);
  growing.set_grown(growing.blocks_to_grow());
  const ResNet whole = make(Arch::resnet18, Stem::stride2, 4);
  growing.forward(noise(8), kTraining).square().sum().backward();
  whole.forward(noise(8), kTraining).square().sum().backward();
  const NamedTensors state = save_state(growing), expected = save_state(whole);
  ASSERT_EQ(state.size(), expected.size());
  for (std::size_t i = 0; i < state.size(); ++i) {
    EXPECT_TRUE(torch::equal(state[i].second, expected[i].second)) << state[i].first;
  }
  for (const auto& item : whole.named_parameters()) {
    const torch::Tensor gradient = growing.named_parameters()[item.key()].grad();
    EXPECT_TRUE(torch::equal(gradient, item.value().grad())) << item.key();
  }
}

}  // namespace
}  // namespace riffle
