// A test fixture with a folder of small pictures, and passes over it.
#pragma once

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "riffle/base/error.h"
#include "riffle/base/file_faults.h"
#include "riffle/base/text.h"
#include "riffle/curate/curate.h"
#include "riffle/curate/learning_encoder.h"
#include "riffle/curate/testing/small_pass.h"
#include "riffle/model/objective.h"
#include "riffle/stream/testing/picture_folder.h"
#include "riffle/train/testing/learner.h"

namespace riffle {

class CurateFolder : public PictureFolder {
 protected:
  CurateFolder()
      : encoder_(make_objective({.arch = Arch::resnet10,
                                 .stem = Stem::stride2,
                                 .width = 8,
                                 .residual_gamma = 1,
                                 .projector_hidden = 8,
                                 .projector_out = 8,
                                 .predictor_hidden = 4},
                                5)) {}

  // Sixty pictures of two labels, every third of them a copy of another.
  void SetUp() override {
    const auto stream = open_stream("synthetic:?frames=1&size=24&classes=4&samples=60&seed=3");
    std::vector<std::vector<std::byte>> files;
    while (auto sample = stream->next()) files.push_back(encode_png(sample->picture));
    for (std::size_t i = 0; i < files.size(); ++i) {
      const auto& bytes = files[i % 3 == 2 ? i - 2 : i];
      const std::string name = cat("photos/", i % 2 ? "day" : "night", "/", 100 + i, ".png");
      put_bytes(name, bytes);
    }
  }

  CurateConfig config(const std::string& out) const {
    return small_pass(cat("folder:", (folder_ / "photos").string()), folder_ / out);
  }
  CurateResult select(const CurateConfig& config) { return curate(config, *encoder_); }

  // Calls what selects, and leaves a pass that can be continued.
  static void fail_after_three_states(const std::function<void()>& select) {
    std::atomic<int> states = 0;
    const FileFaults faults([&](FileStep step, const std::filesystem::path& path) {
      const bool state = path.filename().string().find("state") != std::string::npos;
      return FileFault{step == FileStep::open && state && ++states > 3 ? EIO : 0};
    });
    EXPECT_THROW(select(), Error);
  }

  std::shared_ptr<Objective> encoder_;
};

// Sixty pictures teach it a few updates.
class LearningCurateFolder : public CurateFolder {
 protected:
  static LearnerConfig learner() {
    LearnerConfig config = small_learner("merge");
    config.buffer.capacity = "16";
    config.train.max_updates = 0;
    config.train.schedule = ScheduleKind::constant;
    return config;
  }
  static CurateResult select(const CurateConfig& config) {
    LearningEncoder encoder(learner());
    return curate(config, encoder);
  }
};

}  // namespace riffle
