// For the tests of this room: a folder of its own for each, gone afterwards, and pictures to put
// there.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "riffle/base/log.h"
#include "riffle/image/codec.h"

namespace riffle {

inline Picture solid_picture(int level) {
  Picture made(8, 6);
  std::fill(made.rgb.begin(), made.rgb.end(), static_cast<std::uint8_t>(level));
  return made;
}
inline std::vector<std::byte> solid_png(int level) { return encode_png(solid_picture(level)); }

class MadeFolder : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "riffle-stream-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root_ = name;
    set_log_level(LogLevel::quiet);
  }
  void TearDown() override {
    if (!root_.empty()) std::filesystem::remove_all(root_);
    set_log_level(LogLevel::info);
  }

  // Without the flushes of write_atomically, which these tests would wait for a thousand times.
  void put_bytes(const std::filesystem::path& name, std::span<const std::byte> bytes) const {
    std::filesystem::create_directories((root_ / name).parent_path());
    std::ofstream out(root_ / name, std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes.data()),
              static_cast<std::streamsize>(bytes.size()));
    ASSERT_TRUE(out.flush());
  }
  void put_text(const std::filesystem::path& name, const std::string& text) const {
    put_bytes(name, std::as_bytes(std::span(text)));
  }

  std::filesystem::path root_;
};

}  // namespace riffle
