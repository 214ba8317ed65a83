// A test fixture with a temporary folder of its own, which is removed after the test.
//
// The folder is in memory where there is room, unless TMPDIR says otherwise: tests flush thousands
// of files, and a disk takes milliseconds for each.
#pragma once

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include <gtest/gtest.h>
#include <unistd.h>

namespace riffle {

inline std::filesystem::path temp_root() {
  constexpr std::uintmax_t kRoom = std::uintmax_t{1} << 30;
  const std::filesystem::path in_memory = "/dev/shm";
  std::error_code none;
  const auto space = std::filesystem::space(in_memory, none);
  const bool usable = !none && space.available >= kRoom && ::access(in_memory.c_str(), W_OK) == 0;
  return usable && std::getenv("TMPDIR") == nullptr ? in_memory
                                                    : std::filesystem::temp_directory_path();
}

class TempFolder : public testing::Test {
 protected:
  TempFolder() {
    std::string name = (temp_root() / "riffle-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
      throw std::filesystem::filesystem_error("mkdtemp", name, {errno, std::generic_category()});
    }
    folder_ = name;
  }
  ~TempFolder() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  std::filesystem::path folder_;  // empty at first
};

}  // namespace riffle
