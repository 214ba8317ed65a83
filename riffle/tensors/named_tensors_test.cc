#include "riffle/tensors/named_tensors.h"

#include <gmock/gmock.h>
#include <torch/types.h>

#include "riffle/base/error.h"

namespace riffle {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

TEST(NamedTensors, IntegersAndTextsComeBack) {
  NamedTensors state = {{"numbers", integers_tensor(std::vector<std::int64_t>{3, -1})},
                        {"none", integers_tensor({})}};
  add_texts(state, "words", std::vector<std::string>{"", "käse", std::string("a\0b", 3)});
  EXPECT_THAT(find_integers(state, "numbers", 2), ElementsAre(3, -1));
  EXPECT_THAT(find_integers(state, "none"), IsEmpty());
  EXPECT_THAT(find_texts(state, "words", 3), ElementsAre("", "käse", std::string("a\0b", 3)));
}

TEST(NamedTensors, PartsAreFoundByTheirPrefix) {
  NamedTensors state = {{"x", torch::zeros({1})}};
  add_part(state, "part.", {{"x", torch::ones({1})}});
  const auto part = find_part(state, "part.");
  ASSERT_EQ(part.size(), 1u);
  EXPECT_EQ(part[0].first, "x");
  EXPECT_EQ(part[0].second.item<float>(), 1);
}

TEST(NamedTensors, MissingAndDamagedTensorsAreNamed) {
  NamedTensors state = {{"a", torch::zeros({2})}};
  EXPECT_THAT([&] { find_tensor(state, "b"); }, ThrowsMessage<Error>(HasSubstr("'b' is missing")));
  EXPECT_THAT([&] { find_integers(state, "a"); }, ThrowsMessage<Error>(HasSubstr("'a'")));
  state = {{"n", integers_tensor(std::vector<std::int64_t>{1})}};
  EXPECT_THAT([&] { find_integers(state, "n", 2); }, ThrowsMessage<Error>(HasSubstr("not 2")));
  state = {{"t.lengths", integers_tensor(std::vector<std::int64_t>{4})},
           {"t.bytes", torch::zeros({3}, torch::kByte)}};
  EXPECT_THAT([&] { find_texts(state, "t", 1); }, ThrowsMessage<Error>(HasSubstr("disagree")));
  state[0].second = integers_tensor(std::vector<std::int64_t>{2});
  EXPECT_THAT([&] { find_texts(state, "t", 1); }, ThrowsMessage<Error>(HasSubstr("disagree")));
}

}  // namespace
}  // namespace riffle
