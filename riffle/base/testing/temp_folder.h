// A test fixture with a temporary folder of its own, which is removed after the test.
#pragma once

#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>

#include <gtest/gtest.h>
#include <unistd.h>

#include "riffle/base/testing/temp_root.h"

namespace riffle {

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
