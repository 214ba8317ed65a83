// Small runs for tests, and how to compare two of them.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "riffle/base/file.h"
#include "riffle/base/log.h"
#include "riffle/base/testing/temp_folder.h"
#include "riffle/base/text.h"
#include "riffle/run/checkpoint.h"
#include "riffle/run/run_folder.h"
#include "riffle/run/training.h"
#include "riffle/train/testing/learner.h"

namespace riffle {

namespace fs = std::filesystem;

inline Config tiny(const std::string& policy) {
  Config config;
  config.stream = "synthetic:?frames=6&size=16&seed=1";
  config.learner = small_learner(policy);
  config.learner.train.max_updates = 20;
  config.metrics.every = 1;
  config.metrics.nearest_every = 5;
  config.checkpoint.every = 1;
  config.checkpoint.keep = 1000;
  config.checkpoint.wait = true;  // so that they are the same ones on every machine
  return config;
}

// The lines of metrics, without what the wall clock says.
inline std::vector<std::string> metrics_of(const fs::path& run) {
  std::vector<std::string> lines;
  for (const auto& text : split(read_text(run / "metrics.jsonl"), '\n')) {
    if (text.empty()) continue;
    auto line = nlohmann::ordered_json::parse(text);
    for (const char* key :
         {"seconds", "updates_per_s", "samples_per_s", "updates_per_batch", "idle_share",
          "stream_held_share", "checkpoint_update", "checkpoint_stall_s",
          "checkpoint_picture_bytes", "checkpoint_failures"}) {
      EXPECT_TRUE(line.contains(key)) << key;
      line.erase(key);
    }
    lines.push_back(line.dump());
  }
  return lines;
}

// The state of the newest checkpoint, with the pictures themselves in place of their places.
inline NamedTensors state_of(const fs::path& run) {
  const auto folder = RunFolder::open(run);
  const Config config = folder.config();
  const auto checkpoint = read_checkpoint(folder, folder.checkpoint_names().back());
  const auto stream = open_stream(config.stream, config.shapes);
  Learner learner(config.learner, *stream);
  PictureLog log(folder.checkpoints(), learner.buffer().slots(), learner.buffer().stored_bytes());
  restore_checkpoint(checkpoint, learner, log);
  auto state = learner.save();
  state.emplace_back("pictures", learner.buffer().stored(learner.buffer().live()));
  return state;
}

// Returns whether the wall clock decides what a tensor of a state holds.
inline bool is_time(const std::string& name) { return name == "buffer.times"; }

inline void expect_same(const fs::path& a, const fs::path& b) {
  EXPECT_EQ(metrics_of(a), metrics_of(b));
  const auto first = state_of(a);
  const auto second = state_of(b);
  ASSERT_EQ(first.size(), second.size());
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(first[i].first, second[i].first);
    if (is_time(first[i].first)) continue;
    EXPECT_TRUE(first[i].second.equal(second[i].second)) << first[i].first;
  }
}

class RunTest : public TempFolder {
 protected:
  RunTest() { set_log_level(LogLevel::quiet); }

  // As if the run had been killed when `checkpoint` was its newest.
  fs::path killed_after(const fs::path& run, const std::string& checkpoint) const {
    const fs::path killed = folder_ / ("killed-" + checkpoint);
    fs::copy(run, killed, fs::copy_options::recursive);
    const auto folder = RunFolder::open(killed);
    for (const auto& name : folder.checkpoint_names()) {
      if (name > checkpoint) fs::remove(folder.manifest(name));
    }
    return killed;
  }

  // Some of a run's checkpoints, each with another one before it.
  static std::vector<std::string> some_checkpoints(const fs::path& run, std::size_t most) {
    const auto names = RunFolder::open(run).checkpoint_names();
    EXPECT_GE(names.size(), 2u);
    std::vector<std::string> some;
    const std::size_t count = std::min(most, names.size() - 1);
    for (std::size_t i = 1; i <= count; ++i) some.push_back(names[i * (names.size() - 1) / count]);
    return some;
  }
};

}  // namespace riffle
