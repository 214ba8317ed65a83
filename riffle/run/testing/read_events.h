// A run's event files, as TensorBoard itself reads them.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>

#include "riffle/base/text.h"

namespace riffle {

// Returns what testdata/read_events.py prints; nothing if there is no TensorBoard.
inline std::optional<nlohmann::json> read_by_tensorboard(const std::filesystem::path& folder) {
  constexpr int kPackageMissing = 77;  // an exit code of the script
  if (std::string(RIFFLE_PYTHON).empty()) return std::nullopt;
  const std::string command =
      cat("LD_PRELOAD= '", RIFFLE_PYTHON, "' '", RIFFLE_SOURCE_DIR,
          "/riffle/run/testdata/read_events.py' '", folder.string(), "' 2>/dev/null");
  FILE* pipe = popen(command.c_str(), "r");
  std::string out;
  for (int c; (c = std::fgetc(pipe)) != EOF;) out.push_back(static_cast<char>(c));
  const int code = WEXITSTATUS(pclose(pipe));
  if (code == kPackageMissing) return std::nullopt;
  EXPECT_EQ(code, 0) << command;
  return nlohmann::json::parse(out);
}

}  // namespace riffle
