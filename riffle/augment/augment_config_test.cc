#include "riffle/augment/augment_config.h"

#include <limits>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/base/error.h"

namespace riffle {
namespace {

using testing::HasSubstr;

void expect_refused(const std::string& assignment, const std::string& key) {
  AugmentConfig config;
  Fields fields;
  config.describe(fields);
  fields.set_assignment(assignment);
  try {
    config.validate();
    ADD_FAILURE() << assignment << " was taken";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr(key)) << assignment;
    EXPECT_EQ(error.exit_code(), 2);
  }
}

TEST(AugmentConfig, DefaultsAndTheirLimitsAreValid) {
  EXPECT_NO_THROW(AugmentConfig().validate());
  AugmentConfig config = probe_training_augmentation(32);
  EXPECT_NO_THROW(config.validate());
  EXPECT_EQ(config.size, 32);
  config.crop_min = config.crop_max = 1.0;
  config.flip = 0.0;
  config.hue = 0.5;
  config.brightness = config.contrast = config.saturation = 0.0;
  config.blur_sigma_min = config.blur_sigma_max = 1.0;
  EXPECT_NO_THROW(config.validate());
}

TEST(AugmentConfig, RefusesSizesNoViewCanHave) {
  expect_refused("augment.size=0", "augment.size");
  expect_refused("augment.size=-224", "augment.size");
  expect_refused("augment.size=7", "augment.size");
  expect_refused("augment.size=100000", "augment.size");
}

TEST(AugmentConfig, RefusesProbabilitiesOutsideZeroToOne) {
  for (const std::string key : {"flip", "jitter", "grayscale", "blur"}) {
    expect_refused("augment." + key + "=1.01", "augment." + key);
    expect_refused("augment." + key + "=-0.1", "augment." + key);
  }
}

TEST(AugmentConfig, RefusesCropsAndBlursThatCannotBe) {
  expect_refused("augment.crop_min=0", "augment.crop_min");
  expect_refused("augment.crop_max=1.5", "augment.crop_max");
  expect_refused("augment.crop_max=0.1", "augment.crop_min (0.2)");
  expect_refused("augment.blur_sigma_min=0", "augment.blur_sigma_min");
  expect_refused("augment.blur_sigma_min=3", "augment.blur_sigma_max (2)");
}

TEST(AugmentConfig, RefusesColourChangesOutOfRange) {
  expect_refused("augment.brightness=-0.4", "augment.brightness");
  expect_refused("augment.contrast=-1", "augment.contrast");
  expect_refused("augment.saturation=100", "augment.saturation");
  expect_refused("augment.hue=0.6", "augment.hue");
}

TEST(AugmentConfig, RefusesWhatIsNotANumber) {
  AugmentConfig config;
  config.flip = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(config.validate(), Error);
}

}  // namespace
}  // namespace riffle
