#include "riffle/model/model_config.h"

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

}  // namespace
}  // namespace riffle
