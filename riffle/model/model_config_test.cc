#include "riffle/model/model_config.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/base/error.h"

namespace riffle {
namespace {

TEST(ModelConfig, KeysAreReadAndWritten) {
  ModelConfig config;
  Fields fields;
  config.describe(fields);
  fields.set("model.arch", "resnet50");
  fields.set("model.stem", "small");
  fields.set("model.width", "32");
  EXPECT_EQ(config.arch, Arch::resnet50);
  EXPECT_EQ(config.stem, Stem::small);
  EXPECT_EQ(config.width, 32);
  EXPECT_EQ(fields.get("model.projector_out"), "2048");
  EXPECT_THROW(fields.set("model.arch", "vgg"), Error);
}

TEST(ModelConfig, ValuesOutOfRangeAreRefusedByName) {
  for (const auto& [key, values] : std::vector<std::pair<std::string, std::vector<std::string>>>{
           {"model.width", {"0", "65537", "9223372036854775807"}},
           {"model.projector_hidden", {"-1", "65537"}},
           {"model.projector_out", {"0", "65537"}},
           {"model.predictor_hidden", {"0", "65537"}},
           {"model.visreg_slices", {"0", "65537"}}}) {
    for (const auto& value : values) {
      ModelConfig config;
      Fields fields;
      config.describe(fields);
      fields.set(key, value);
      EXPECT_THAT([&] { config.validate(); },
                  testing::ThrowsMessage<Error>(testing::HasSubstr(key + " is " + value)));
    }
  }
}

TEST(ModelConfig, ATransformerHasNoResidualGamma) {
  ModelConfig config{.arch = Arch::vit_s, .residual_gamma = 1};
  EXPECT_THAT([&] { config.validate(); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("model.residual_gamma=1")));
  config.residual_gamma = 0;
  config.validate();
}

}  // namespace
}  // namespace riffle
