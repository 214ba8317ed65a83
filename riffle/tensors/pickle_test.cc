#include "riffle/tensors/pickle.h"

#include <cstdint>
#include <span>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/base/error.h"

namespace riffle {
namespace {

using testing::HasSubstr;

// Returns the value of a program of the unpickler.
PickleValue run_pickle(const std::string& program) {
  PickleValues values;
  std::span<const std::byte> bytes = std::as_bytes(std::span(program));
  const Pickled value = read_pickle(bytes, values);
  EXPECT_TRUE(bytes.empty());
  return *value;
}

std::string pickle_refusal(const std::string& program) {
  try {
    run_pickle(program);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string little_endian(std::uint32_t number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

TEST(Pickle, ReadsNumbersTextsSequencesAndNames) {
  EXPECT_EQ(run_pickle("K\x07.").integer, 7);
  EXPECT_EQ(run_pickle(std::string("\x8a\x02\xff\xff.", 5)).integer, -1);
  EXPECT_EQ(run_pickle("U\x02hi.").text, "hi");
  EXPECT_EQ(run_pickle("(K\x01K\x02t.").items.size(), 2u);
  EXPECT_EQ(run_pickle("}U\x01kK\x05s.").entries.size(), 1u);
}

TEST(Pickle, RefusesWhatIsCutOffOrNotThere) {
  for (const std::string program : {"", "K", "U\x05hi", ".", "t.", "h\x01.", "K\x01R."}) {
    EXPECT_NE(pickle_refusal(program), "") << program;
  }
  EXPECT_THAT(pickle_refusal("\xff"), HasSubstr("operation 255"));
}

// A file could recall what it copies a million times.
TEST(Pickle, CopiesNothingLong) {
  const std::string text = "X" + little_endian(100'000) + std::string(100'000, 'a');
  EXPECT_THAT(pickle_refusal(text + "q\x01h\x01\x93."), HasSubstr("long"));
  std::string sequence = "(";
  for (int i = 0; i < 100; ++i) sequence += "K\x01";
  EXPECT_THAT(pickle_refusal(sequence + "tQ."), HasSubstr("many parts"));
}

}  // namespace
}  // namespace riffle
