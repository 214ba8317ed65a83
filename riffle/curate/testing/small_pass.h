// For tests: a pass over few small pictures.
#pragma once

#include <filesystem>
#include <string>

#include "riffle/curate/curate.h"

namespace riffle {

// Keeps twelve pictures, and could be continued after any batch of eight.
inline CurateConfig small_pass(const std::string& stream, const std::filesystem::path& out) {
  CurateConfig config;
  config.stream = stream;
  config.keep = 12;
  config.out = out;
  config.encoder = "a test's";
  config.input = 16;
  config.batch = 8;
  config.assignments = true;
  config.save_every_s = 0;
  return config;
}

}  // namespace riffle
