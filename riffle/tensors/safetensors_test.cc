#include "riffle/tensors/safetensors.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "riffle/base/clock.h"
#include "riffle/base/error.h"
#include "riffle/base/file.h"
#include "riffle/base/testing/memory_rise.h"
#include "riffle/base/testing/temp_folder.h"
#include "riffle/base/text.h"

namespace riffle {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

class SafetensorsFile : public TempFolder {
 protected:
  // A file with this header and `values` bytes of values.
  void write_raw(const std::string& header, std::size_t values) {
    std::string content(8, '\0');
    const std::uint64_t length = header.size();
    std::memcpy(content.data(), &length, 8);
    write_atomically(path_, content + header + std::string(values, '\1'));
  }

  void expect_refused(const std::string& because) {
    EXPECT_THAT([&] { read_safetensors(path_); },
                ThrowsMessage<Error>(AllOf(HasSubstr(path_.string()), HasSubstr(because))));
  }

  const std::filesystem::path path_ = folder_ / "test.safetensors";
};

TEST_F(SafetensorsFile, EveryTypeShapeAndTheMetadataComeBack) {
  const torch::Tensor values = torch::arange(24).reshape({2, 3, 4});
  NamedTensors tensors;
  for (const auto type : {torch::kFloat64, torch::kFloat32, torch::kFloat16, torch::kBFloat16,
                          torch::kInt64, torch::kInt32, torch::kUInt8, torch::kBool}) {
    tensors.emplace_back(cat("tensor/", torch::toString(type)), values.to(type));
  }
  tensors.emplace_back("scalar", torch::tensor(2.5f));
  tensors.emplace_back("none", torch::empty({0, 7}));
  tensors.emplace_back("transposed", values.to(torch::kFloat32).transpose(0, 2));
  tensors.emplace_back("name with \"quotes\" and ü", torch::ones({1}));
  const std::map<std::string, std::string> metadata = {{"format", "pt"}, {"update", "17\n"}};
  write_safetensors(path_, tensors, metadata);

  const Safetensors read = read_safetensors(path_);
  EXPECT_EQ(read.metadata, metadata);
  ASSERT_EQ(read.tensors.size(), tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_EQ(read.tensors[i].first, tensors[i].first);
    EXPECT_EQ(read.tensors[i].second.dtype(), tensors[i].second.dtype());
    EXPECT_TRUE(torch::equal(read.tensors[i].second, tensors[i].second)) << tensors[i].first;
  }
}

TEST_F(SafetensorsFile, WritingMakesNoCopyAndReadingOne) {
  constexpr std::int64_t kBytes = std::int64_t{64} << 20;
  const torch::Tensor values = torch::ones({kBytes / 4});
  const auto writing = memory_rise([&] { write_safetensors(path_, {{"values", values}}); });
  if (!writing) GTEST_SKIP() << "the kernel's high-water mark cannot be lowered here";
  const auto reading = memory_rise([&] { read_safetensors(path_); });
  std::cout << "64 MiB: " << *writing / 1024 << " KiB more to write, " << *reading / 1024
            << " KiB more to read\n";
  EXPECT_LT(*writing, kBytes / 2);
  EXPECT_LT(*reading, kBytes * 3 / 2);
}

TEST_F(SafetensorsFile, NoTensorsAreAValidFile) {
  write_safetensors(path_, {});
  EXPECT_TRUE(read_safetensors(path_).tensors.empty());
}

TEST_F(SafetensorsFile, ValuesLieRowMajorAfterAnAlignedHeader) {
  write_safetensors(path_, {{"a", torch::tensor({1.0f, 2.0f})}});
  const std::string content = read_text(path_);
  std::uint64_t length = 0;
  std::memcpy(&length, content.data(), 8);
  EXPECT_EQ(length % 8, 0u);
  EXPECT_THAT(content.substr(8, length),
              testing::StartsWith(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})"));
  EXPECT_EQ(content.substr(8 + length), std::string("\0\0\x80\x3f\0\0\0\x40", 8));
}

TEST_F(SafetensorsFile, AFileCutAnywhereIsRefused) {
  write_safetensors(path_, {{"a", torch::ones({3})}, {"b", torch::ones({2, 2})}});
  const std::string whole = read_text(path_);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    write_atomically(path_, whole.substr(0, length));
    EXPECT_THROW(read_safetensors(path_), Error) << length;
  }
}

TEST_F(SafetensorsFile, AMissingFileIsNamed) {
  EXPECT_THAT([&] { read_safetensors(path_); }, ThrowsMessage<Error>(HasSubstr(path_.string())));
}

TEST_F(SafetensorsFile, DamagedHeadersAreRefused) {
  write_raw("{", 0);
  expect_refused("JSON");
  write_raw("[]", 0);
  expect_refused("JSON");
  write_raw(R"({"a":{"dtype":"F32","shape":[1]}})", 4);
  expect_refused("data_offsets");
  write_raw(R"({"a":{"dtype":"F31","shape":[1],"data_offsets":[0,4]}})", 4);
  expect_refused("F31");
  write_raw(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4);
  expect_refused("shape");
  write_raw(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4]}})", 4);
  expect_refused("larger than the file");
  write_raw(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4);
  expect_refused("'a'");
  write_raw(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4);
  expect_refused("'a'");
  write_raw(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0.5,4]}})", 4);
  expect_refused("data_offsets");
  std::string ones = "1";
  for (int i = 0; i < 64; ++i) ones += ",1";
  write_raw(R"({"a":{"dtype":"F32","shape":[)" + ones + R"(],"data_offsets":[0,4]}})", 4);
  expect_refused("65 dimensions");
  write_raw(R"({"__metadata__":{"a":1}})", 0);
  expect_refused("__metadata__");
}

TEST_F(SafetensorsFile, AHeaderOfManyKeysIsReadInTimeThatGrowsWithItsLength) {
  const auto seconds = [&](int keys) {
    std::string header = "{";
    for (int i = 0; i < keys; ++i) {
      header += cat(i > 0 ? "," : "", "\"t", i, R"(":{"dtype":"U8","shape":[1],"data_offsets":[)",
                    i, ',', i + 1, "]}");
    }
    write_raw(header + '}', static_cast<std::size_t>(keys));
    const auto start = Clock::now();
    const Safetensors read = read_safetensors(path_);
    EXPECT_EQ(read.tensors.size(), static_cast<std::size_t>(keys));
    EXPECT_EQ(read.tensors.back().first, cat("t", keys - 1)) << "in the order of the file";
    return seconds_since(start);
  };
  // Quadratic, 40,000 keys took sixteen times as long as 10,000: seconds. The constant is for a
  // machine that is busy with something else.
  const double few = seconds(10'000);
  EXPECT_LT(seconds(40'000), 8 * few + 0.5);
}

TEST_F(SafetensorsFile, OverlapsGapsAndLeftoversAreRefused) {
  const std::string a = R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  write_raw("{" + a + R"(,"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8);
  expect_refused("overlaps");
  write_raw("{" + a + R"(,"b":{"dtype":"F32","shape":[1],"data_offsets":[12,16]}})", 16);
  expect_refused("gap");
  write_raw("{" + a + "}", 12);
  expect_refused("12");
  write_raw("{" + a + "," + a + "}", 8);
  expect_refused("same name");
}

TEST_F(SafetensorsFile, WhatTheFormatCannotHoldIsAProgrammersError) {
  EXPECT_THROW(write_safetensors(path_, {{"a", torch::ones({1})}, {"a", torch::ones({1})}}),
               std::logic_error);
  EXPECT_THROW(write_safetensors(path_, {{"a", torch::ones({1}, torch::kInt16)}}),
               std::logic_error);
}

}  // namespace
}  // namespace riffle
