#include "riffle/stream/wordnet.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/base/error.h"
#include "riffle/base/file.h"
#include "riffle/base/testing/temp_folder.h"
#include "riffle/base/text.h"

namespace riffle {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

// entity -> 2 (-> 5, 4), 3 (-> 4, 6 as an instance). The third word count is hexadecimal.
const std::string kSmall =
    "  1 A licence.\n"
    "00001740 03 n 01 entity 0 002 ~ 00000002 n 0000 ~ 00000003 n 0000 | all there is\n"
    "00000002 03 n 02 two 0 deux 0 004 @ 00001740 n 0000 ~ 00000005 n 0000 + 00000006 v 0101 "
    "~ 00000004 n 0000 | ~ 00000099 n 0000\n"
    "00000003 03 n 0a a 0 b 0 c 0 d 0 e 0 f 0 g 0 h 0 i 0 j 0 003 @ 00001740 n 0000 "
    "~ 00000004 n 0000 ~i 00000006 n 0000 | three\n"
    "00000004 03 n 01 four 0 001 @ 00000002 n 0000 | four\n"
    "00000005 03 n 01 five 0 001 @ 00000002 n 0000 | five\n"
    "00000006 03 n 01 six 0 001 @i 00000003 n 0000 | six\n"
    "00000007 03 n 01 seven 0 000 | out of reach\n";

class WordNet : public TempFolder {
 protected:
  WordNet() { write_atomically(path_, kSmall); }

  const std::filesystem::path path_ = folder_ / "data.noun";
};

TEST_F(WordNet, OrdersLabelsByADepthFirstWalk) {
  EXPECT_THAT(
      wordnet_order({"n00000006", "n00000004", "n00000003", "n00000002", "n00000005"}, path_),
      ElementsAre("n00000002", "n00000005", "n00000004", "n00000003", "n00000006"));
  EXPECT_THAT(wordnet_order({"n00000003", "n00000004"}, path_),
              ElementsAre("n00000004", "n00000003"));
}

TEST_F(WordNet, RefusesLabelsThatHaveNoPlace) {
  EXPECT_THAT([&] { wordnet_order({"cat"}, path_); },
              ThrowsMessage<Error>(AllOf(HasSubstr("'cat'"), HasSubstr("list="))));
  EXPECT_THAT(
      [&] {
        wordnet_order({"n00000002", "n00000009"}, path_);
      },
      ThrowsMessage<Error>(HasSubstr("n00000009")));
  EXPECT_THAT([&] { wordnet_order({"n00000007"}, path_); },
              ThrowsMessage<Error>(HasSubstr("n00000007")));
}

TEST_F(WordNet, RefusesAFileThatIsMissingOrDamaged) {
  EXPECT_THAT([] { wordnet_order({"n00000002"}, "/nowhere/data.noun"); },
              ThrowsMessage<Error>(AllOf(HasSubstr("/nowhere"), HasSubstr("wordnet-base"))));
  for (const auto& text :
       {std::string(), kSmall.substr(0, 40), kSmall + "00000008 03 n 01 eight 0 002 ~ 0000",
        kSmall + "<html>\n", kSmall + "00000008 03 n -1 eight 0 000 | x\n",
        kSmall + "00000008 03 n 3fffffff eight 0 000 | x\n",
        kSmall + "00000008 03 n 7fffffff eight 0 000 | x\n"}) {
    write_atomically(path_, text);
    EXPECT_THAT([&] { wordnet_order({"n00000002"}, path_); },
                ThrowsMessage<Error>(HasSubstr("is not a file of WordNet nouns")))
        << text;
  }
}

TEST(WordNetOfDebian, PutsAnimalsTogetherAndFoodTogether) {
  if (!std::filesystem::exists(kWordNetNouns))
    GTEST_SKIP() << "no " << kWordNetNouns << ": wordnet-base";
  // pizza, goldfish, bee, lemon, tabby, Chihuahua. Pets come before all other animals.
  EXPECT_THAT(
      wordnet_order({"n07873807", "n01443537", "n02206856", "n07749582", "n02123045", "n02085620"}),
      ElementsAre("n02085620", "n02123045", "n01443537", "n02206856", "n07749582", "n07873807"));
}

}  // namespace
}  // namespace riffle
