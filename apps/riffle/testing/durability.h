// For tests: small runs as processes of their own, and all that they have learned.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "apps/riffle/testing/process.h"
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "riffle/base/testing/temp_folder.h"

namespace riffle {

inline constexpr double kDeadline = 60;

// All that a run has learned: the tensors of its newest checkpoint, with the pictures themselves in
// place of where they are, and the metrics without what the clock on the wall says.
inline std::map<std::string, std::string> learned(const fs::path& run) {
  fs::path state;
  for (const auto& entry : fs::directory_iterator(run / "checkpoints")) {
    if (entry.path().extension() == ".json") state = std::max(state, entry.path());
  }
  const std::string bytes = content(state.replace_extension(".safetensors"));
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof(length));
  std::map<std::string, std::string> parts;
  const auto header = nlohmann::json::parse(bytes.substr(8, length));
  for (const auto& [name, about] : header.items()) {
    if (name == "__metadata__") continue;
    const std::size_t begin = about["data_offsets"][0], end = about["data_offsets"][1];
    parts[name] = bytes.substr(8 + length + begin, end - begin);
  }
  const auto numbers = [&](const std::string& name) {
    std::vector<std::int64_t> values(parts.at(name).size() / 8);
    if (!values.empty()) {  // nothing was seen yet
      std::memcpy(values.data(), parts.at(name).data(), parts.at(name).size());
    }
    return values;
  };
  const auto segments = numbers("pictures.segments"), records = numbers("pictures.records");
  constexpr std::size_t kHeader = 32, kRecord = 16 + 16 * 16 * 3;
  std::map<std::int64_t, std::string> files;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    std::string& file = files[segments[i]];
    const std::string number = std::to_string(segments[i]);
    if (file.empty()) {
      file = content(run / "checkpoints" /
                     ("pictures-" + std::string(9 - number.size(), '0') + number + ".bin"));
    }
    parts["pictures"] +=
        file.substr(kHeader + static_cast<std::size_t>(records[i]) * kRecord, kRecord);
  }
  parts.erase("buffer.times");  // of the wall clock
  parts.erase("pictures.segments");
  parts.erase("pictures.records");
  std::ifstream metrics(run / "metrics.jsonl");
  for (std::string line; std::getline(metrics, line);) {
    parts["metrics"] += line.substr(0, line.find(",\"seconds\":")) + '\n';
  }
  return parts;
}

// Whether a checkpoint was being written: a temporary file, or state without its manifest.
inline bool half_written(const fs::path& checkpoints) {
  std::error_code none_yet;
  for (const auto& entry : fs::directory_iterator(checkpoints, none_yet)) {
    const fs::path path = entry.path();
    if (path.filename().string().starts_with('.')) return true;
    if (path.extension() == ".safetensors" &&
        !fs::exists(fs::path(path).replace_extension(".json")))
      return true;
  }
  return false;
}

inline void expect_learned_the_same(const fs::path& a, const fs::path& b) {
  const auto first = learned(a), second = learned(b);
  ASSERT_EQ(first.size(), second.size());
  for (const auto& [name, bytes] : first) EXPECT_TRUE(second.at(name) == bytes) << name;
  EXPECT_GT(first.at("pictures").size(), 0u);
}

class DurabilityTest : public TempFolder {
 protected:
  Process train(const std::string& run, const std::vector<std::string>& more = {},
                const std::string& stream = "synthetic:?frames=8&size=16") const {
    std::vector<std::string> arguments = {"train",
                                          "--run",
                                          run,
                                          "--stream",
                                          stream,
                                          "--size",
                                          "16",
                                          "--arch",
                                          "resnet10",
                                          "--stem",
                                          "stride2",
                                          "--width",
                                          "2",
                                          "--batch",
                                          "8",
                                          "--capacity",
                                          "32",
                                          "--updates",
                                          "2",
                                          "--threads",
                                          "1",
                                          "--set",
                                          "model.projector_out=16",
                                          "--set",
                                          "model.predictor_hidden=8",
                                          "--set",
                                          "checkpoint.every=3",
                                          "--set",
                                          "metrics.every=1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return {folder_, arguments};
  }
  Process resume(const std::string& run, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"resume", run};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return {folder_, arguments};
  }
  // Files may come and go meanwhile.
  static std::int64_t bytes_in(const fs::path& folder) {
    std::int64_t bytes = 0;
    std::error_code gone;
    for (fs::recursive_directory_iterator at(folder, gone), end; at != end; at.increment(gone)) {
      const auto size = at->file_size(gone);
      if (!gone) bytes += static_cast<std::int64_t>(size);
    }
    return bytes;
  }
  void wait_for(const fs::path& path, Process& process) const {
    const auto start = Clock::now();
    while (!fs::exists(folder_ / path)) {
      ASSERT_FALSE(process.ended(0.001)) << process.errors();
      ASSERT_LT(seconds_since(start), kDeadline) << process.errors();
    }
  }
};

inline const std::vector<std::string> kEndless = {"--max-updates", "0", "--schedule", "constant"};

}  // namespace riffle
