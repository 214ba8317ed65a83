#include "riffle/stream/uri.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/base/error.h"
#include "riffle/stream/stream.h"

namespace riffle {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Uri, HasSchemePathAndOptions) {
  Uri uri("folder:/data/photos?order=time&seed=7&keep=yes&rate=0.5");
  EXPECT_EQ(uri.scheme(), "folder");
  EXPECT_EQ(uri.path(), "/data/photos");
  EXPECT_EQ(uri.get_choice("order", {"name", "time"}), "time");
  EXPECT_EQ(uri.get_integer("seed", 0, 0, 10), 7);
  EXPECT_TRUE(uri.get_bool("keep", false));
  EXPECT_EQ(uri.get_number("rate", 1, 0, 1), 0.5);
  EXPECT_NO_THROW(uri.refuse_unknown());
}

TEST(Uri, MissingOptionsTakeTheirDefaults) {
  Uri uri("synthetic:");
  EXPECT_EQ(uri.path(), "");
  EXPECT_EQ(uri.get("name", "none"), "none");
  EXPECT_EQ(uri.get_choice("order", {"name", "time"}), "name");
  EXPECT_EQ(uri.get_integer("seed", 3, 0, 10), 3);
  EXPECT_NO_THROW(uri.refuse_unknown());
}

TEST(Uri, PercentCodesAreDecodedInPathAndValues) {
  Uri uri("folder:/a%20b%3Fc/100%25?name=x%26y%3dz");
  EXPECT_EQ(uri.path(), "/a b?c/100%");
  EXPECT_EQ(uri.get("name", ""), "x&y=z");
}

TEST(Uri, AnyBytesSurviveEncodingAndDecoding) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  const std::string encoded = encode_percent(bytes);
  EXPECT_EQ(decode_percent(encoded), bytes);
  for (const char c : encoded) EXPECT_TRUE(c > ' ' && c <= '~');
  EXPECT_EQ(encode_percent("a/b-c_1.jpg"), "a/b-c_1.jpg");
}

TEST(Uri, APathMayHoldColonsAndFurtherText) {
  EXPECT_EQ(Uri("urls:http://host:80/list").path(), "http://host:80/list");
}

TEST(Uri, TextThatIsNotAnAddressIsRefusedWithAnExample) {
  EXPECT_THAT(
      [] { Uri("/data/photos"); },
      ThrowsMessage<Error>(AllOf(HasSubstr("'/data/photos'"), HasSubstr("folder:/data/photos"))));
  EXPECT_THROW(Uri(""), Error);
  EXPECT_THROW(Uri(":x"), Error);
  EXPECT_THROW(Uri("folder:/x?order"), Error);
  EXPECT_THROW(Uri("folder:/x?=name"), Error);
  EXPECT_THROW(Uri("folder:/x?a=1&a=2"), Error);
  EXPECT_THAT([] { Uri("folder:/100%zz"); }, ThrowsMessage<Error>(HasSubstr("%25")));
  EXPECT_THROW(Uri("folder:/x%4"), Error);
}

TEST(Uri, BadValuesNameTheOptionAndWhatWouldBeValid) {
  Uri uri("folder:/x?order=nam&seed=-1&size=big");
  EXPECT_THAT(
      [&] {
        uri.get_choice("order", {"name", "time"});
      },
      ThrowsMessage<Error>(AllOf(HasSubstr("'order'"), HasSubstr("name, time"))));
  EXPECT_THAT(
      [&] { uri.get_integer("seed", 0, 0, 10); },
      ThrowsMessage<Error>(AllOf(HasSubstr("'seed'"), HasSubstr("0 to 10"), HasSubstr("-1"))));
  EXPECT_THAT([&] { uri.get_integer("size", 0, 0, 10); },
              ThrowsMessage<Error>(AllOf(HasSubstr("'size'"), HasSubstr("big"))));
}

TEST(Uri, AnOptionNobodyAskedForIsRefusedByItsNearestName) {
  Uri uri("folder:/x?sede=1");
  uri.get_integer("seed", 0, 0, 10);
  uri.get("order", "name");
  EXPECT_THAT([&] { uri.refuse_unknown(); },
              ThrowsMessage<Error>(AllOf(HasSubstr("'sede'"), HasSubstr("'seed'"))));
}

TEST(OpenStream, AnUnknownSchemeIsRefusedByItsNearestName) {
  EXPECT_THAT([] { open_stream("foldr:/x"); },
              ThrowsMessage<Error>(AllOf(HasSubstr("'foldr'"), HasSubstr("'folder'"))));
}

TEST(Uri, AnAddressOfAnyBytesHasTheSameMeaningAsText) {
  const std::string raw = "folder:/caf\xe9/caf\xc3\xa9/two\nlines%20?label=\x1b";
  const std::string text = text_address(raw);
  EXPECT_EQ(text, "folder:/caf%e9/caf\xc3\xa9/two%0alines%20?label=%1b");
  EXPECT_EQ(text_address(text), text);
  Uri before(raw), after(text);
  EXPECT_EQ(before.path(), after.path());
  EXPECT_EQ(before.get("label", ""), after.get("label", ""));
}

}  // namespace
}  // namespace riffle
