// Studies of seconds, for tests.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "riffle/base/file.h"
#include "riffle/base/log.h"
#include "riffle/base/testing/temp_folder.h"
#include "riffle/study/study_file.h"

namespace riffle {

namespace fs = std::filesystem;

inline const std::string kTinyStudy = R"(title: Tiny
set:
  model: {arch: resnet10, stem: stride2, width: 2, projector_hidden: 8, projector_out: 8, predictor_hidden: 4}
  augment: {size: 16, blur: 0}
  buffer.capacity: 16
  train: {batch: 8, max_updates: 40, updates: 2, threads: 1}
  metrics: {every: 1, nearest_every: 0}
  stream.uri: 'synthetic:?frames=4&size=16&classes=4&seed={seed}'
vary:
  mode:
    none: {title: Conventional, buffer.policy: none}
    fifo: {title: FIFO, buffer.policy: fifo}
probe:
  points: 4
  sets:
    made: {train: 'synthetic:?frames=1&size=16&seed=91&samples=60&classes=4', val: 'synthetic:?frames=1&size=16&seed=92&samples=30&classes=4'}
scales:
  smoke: {seeds: 2}
show:
  - table: Accuracy
    rows: mode
    values: [linear_top1, updates]
  - lines: Pairs
    y: same_clip_pairs
    line: mode
published:
  - {mode: fifo, linear_top1: 12.5}
)";

class StudyTest : public TempFolder {
 protected:
  StudyTest() { set_log_level(LogLevel::quiet); }

  // The tiny study with one part of its text in place of another.
  Study tiny(const std::string& what = "", const std::string& with = "") const {
    std::string text = kTinyStudy;
    if (!what.empty()) {
      EXPECT_NE(text.find(what), std::string::npos) << what;
      text.replace(text.find(what), what.size(), with);
    }
    write_atomically(folder_ / "tiny.yaml", text);
    return load_study(folder_ / "tiny.yaml", "smoke", "");
  }
};

}  // namespace riffle
