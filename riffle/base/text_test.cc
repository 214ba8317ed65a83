#include "riffle/base/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/base/error.h"

namespace riffle {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Text, JoinsValuesOfAnyKind) { EXPECT_EQ(cat("slot ", 3, " of ", 1.5), "slot 3 of 1.5"); }

TEST(Text, WritesNumbersForPeople) {
  EXPECT_EQ(fixed(3.14159, 2), "3.14");
  EXPECT_EQ(bytes_text(512), "512 B");
  EXPECT_EQ(bytes_text(9'863'954'432), "9.2 GiB");
  EXPECT_EQ(duration_text(7.34), "7.3 s");
  EXPECT_EQ(duration_text(125), "2 min 05 s");
  EXPECT_EQ(duration_text(3790), "1 h 03 min");
}

TEST(Text, PrintsNothingThatSteersATerminal) {
  EXPECT_EQ(printable("Grüße, 東京 🦆\tok"), "Grüße, 東京 🦆\tok");
  EXPECT_EQ(printable("a\n12:00:00 all is well"), "a\\x0a12:00:00 all is well");
  EXPECT_EQ(printable("\x1b[31mred\x07\r"), "\\x1b[31mred\\x07\\x0d");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m\x7f"),
            "\\xc2\\x9b31m\\x7f")
      << "a control of two bytes";
  EXPECT_EQ(printable("caf\xe9"), "caf\\xe9") << "Latin-1";
  EXPECT_EQ(printable("\xe6\x9d"), "\\xe6\\x9d") << "cut";
  EXPECT_EQ(printable("\xc0\xaf\xed\xa0\x80\xf5"), "\\xc0\\xaf\\xed\\xa0\\x80\\xf5");
  EXPECT_EQ(printable(""), "");
}

TEST(Text, AWordOfAShellIsInQuotesWhereItHasToBe) {
  for (const std::string plain : {"runs/a-b_2.1", "--set=x,y:z@3%+", "synthetic:"}) {
    EXPECT_EQ(shell_word(plain), plain);
  }
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("my run"), "'my run'");
  EXPECT_EQ(shell_word("it's <b>&$(x)"), R"('it'\''s <b>&$(x)')");
}

TEST(Text, SplitKeepsEmptyPartsAndJoinUndoesIt) {
  EXPECT_THAT(split("a,,b", ','), ElementsAre("a", "", "b"));
  EXPECT_EQ(join(split("a,,b", ','), ","), "a,,b");
}

TEST(Text, NamesTheNearestCandidate) {
  const std::vector<std::string> keys = {"frames", "seed", "size"};
  EXPECT_EQ(nearest_name("sede", keys), "seed");
  EXPECT_THAT(unknown_name("option", "sede", keys),
              HasSubstr("unknown option 'sede'; did you mean 'seed'?"));
}

TEST(Text, ParsesOnlyWholeNumbers) {
  EXPECT_EQ(parse_integer("-12", "x"), -12);
  EXPECT_DOUBLE_EQ(parse_number("1e-4", "x"), 1e-4);
  EXPECT_TRUE(parse_bool("yes", "x"));
  for (const char* bad : {"", "12a", " 1", "1.5"})
    EXPECT_THROW(parse_integer(bad, "x"), Error) << bad;
  for (const char* bad : {"", "x", "nan", "inf", "1e999"})
    EXPECT_THROW(parse_number(bad, "x"), Error) << bad;
  EXPECT_THROW(parse_bool("maybe", "x"), Error);
}

}  // namespace
}  // namespace riffle
