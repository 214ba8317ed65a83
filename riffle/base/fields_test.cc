#include "riffle/base/fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/base/error.h"

namespace riffle {
namespace {

enum class Colour { red, green };

struct Settings {
  std::int64_t count = 3;
  double rate = 0.1;
  bool on = true;
  std::string name = "x";
  std::vector<std::string> list = {"a"};
  Colour colour = Colour::red;

  void describe(Fields& fields) {
    fields.add("room.count", count, "how many");
    fields.add("room.rate", rate, "how fast");
    fields.add("room.on", on, "whether");
    fields.add("room.name", name, "who");
    fields.add("room.list", list, "which");
    fields.add("room.colour", colour, {{"red", Colour::red}, {"green", Colour::green}},
               "what colour");
  }
};

class FieldsTest : public testing::Test {
 protected:
  FieldsTest() { settings_.describe(fields_); }

  std::string refusal(const std::string& assignment) {
    try {
      fields_.set_assignment(assignment);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  }

  Settings settings_;
  Fields fields_;
};

TEST_F(FieldsTest, EveryKindOfValueIsSetAndPrintedBack) {
  for (const char* assignment : {"room.count=7", "room.rate=1e-05", "room.on=false",
                                 "room.name=a=b", "room.list=p,q", "room.colour=green"}) {
    fields_.set_assignment(assignment);
    const std::string text = assignment;
    const auto equals = text.find('=');
    EXPECT_EQ(fields_.get(text.substr(0, equals)), text.substr(equals + 1));
  }
  EXPECT_EQ(settings_.count, 7);
  EXPECT_EQ(settings_.colour, Colour::green);
  EXPECT_THAT(settings_.list, testing::ElementsAre("p", "q"));
}

TEST_F(FieldsTest, ANumberPrintsAsTheShortestTextThatReadsBack) {
  EXPECT_EQ(fields_.get("room.rate"), "0.1");
}

TEST_F(FieldsTest, AnUnknownKeyNamesTheNearestOne) {
  EXPECT_THAT(refusal("room.cuont=3"), testing::HasSubstr("did you mean 'room.count'?"));
}

TEST_F(FieldsTest, ABadValueNamesItsKeyAndChangesNothing) {
  EXPECT_THAT(refusal("room.count=many"), testing::HasSubstr("room.count"));
  EXPECT_THAT(refusal("room.colour=blue"), testing::HasSubstr("red"));
  EXPECT_THAT(refusal("room.count"), testing::HasSubstr("key=value"));
  EXPECT_EQ(settings_.count, 3);
}

}  // namespace
}  // namespace riffle
