#include "riffle/run/yaml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/base/error.h"
#include "riffle/base/text.h"

namespace riffle {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

void expect_yaml_refused(const std::string& text, const std::string& words) {
  EXPECT_THAT([&] { parse_yaml(text); }, ThrowsMessage<Error>(HasSubstr(words)))
      << text.substr(0, 100);
}

// {a: &a0 [x, x, ...], b: &a1 [*a0, *a0, ...], ...}
std::string laughing(int levels) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < levels; ++i) {
    text += cat("a", i, ": &a", i, " [");
    for (int j = 0; j < 10; ++j) text += cat(j > 0 ? ", " : "", "*a", i - 1);
    text += "]\n";
  }
  return text;
}

TEST(Yaml, AliasesStandForWhatTheyName) {
  const YAML::Node root = parse_yaml("a: &a {x: 1}\nb: *a\nc: [*a, *a]\n");
  EXPECT_EQ(root["b"]["x"].as<int>(), 1);
  EXPECT_EQ(root["c"][1]["x"].as<int>(), 1);
  EXPECT_EQ(parse_yaml(laughing(3))["a2"].size(), 10u);
  EXPECT_TRUE(parse_yaml("").IsNull());
  EXPECT_THROW(parse_yaml("a: [1"), YAML::Exception);
  EXPECT_THROW(parse_yaml("a: *unknown"), YAML::Exception);
}

TEST(Yaml, AnAliasThatLeadsBackToItselfIsRefused) {
  expect_yaml_refused("train: &a {x: *a}\n", "line 1: an alias leads back to itself");
  expect_yaml_refused("a: &a\n  - 1\n  - [2, *a]\n", "line 3: an alias leads back to itself");
}

TEST(Yaml, AliasesThatMultiplyAreRefused) {
  expect_yaml_refused(laughing(6), "more than 100000 values");
  expect_yaml_refused(laughing(500), "more than 100000 values");
}

TEST(Yaml, DepthAndSizeAreBounded) {
  for (const std::string open : {"[", "{a: ", "- ", "? "}) {
    std::string text;
    for (int i = 0; i < 100'000; ++i) text += open;
    expect_yaml_refused(text, "nested more than 64 deep");
  }
  // Deep by aliases: each level holds the one before it.
  std::string chain = "a0: &a0 {x: 1}\n";
  for (int i = 1; i < 100; ++i) chain += cat("a", i, ": &a", i, " {x: *a", i - 1, "}\n");
  expect_yaml_refused(chain, "nested more than 64 deep");
  expect_yaml_refused(std::string(2 << 20, 'x'), "at most 1.0 MiB");
}

}  // namespace
}  // namespace riffle
