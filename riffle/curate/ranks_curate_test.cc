// Run alone and under mpirun as several ranks: ranks that share the encoding leave the files of one
// process.
#include <csignal>
#include <map>
#include <memory>
#include <string>

#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/base/error.h"
#include "riffle/base/file.h"
#include "riffle/base/log.h"
#include "riffle/base/testing/temp_folder.h"
#include "riffle/base/text.h"
#include "riffle/curate/curate.h"
#include "riffle/curate/testing/folder_contents.h"
#include "riffle/curate/testing/small_pass.h"
#include "riffle/dist/ranks.h"
#include "riffle/eval/testing/narrow_model.h"
#include "riffle/image/codec.h"
#include "riffle/stream/stream.h"
#include "riffle/stream/uri.h"

namespace riffle {
namespace {

namespace fs = std::filesystem;

// Sends this process a signal when it has encoded as many batches.
class StoppingEncoder : public Encoder {
 public:
  StoppingEncoder(const std::shared_ptr<Encoder>& below, int batches)
      : below_(register_module("below", below)), left_(batches) {}
  torch::Tensor encode(const torch::Tensor& pictures) override {
    if (--left_ == 0) std::raise(SIGTERM);
    return below_->encode(pictures);
  }
  std::int64_t encoder_dim() const override { return below_->encoder_dim(); }

 private:
  std::shared_ptr<Encoder> below_;
  int left_;
};

class RanksCurate : public TempFolder {
 protected:
  RanksCurate() {
    set_log_level(LogLevel::quiet);
    at::set_num_threads(1);
  }
  ~RanksCurate() override {
    ranks_.wait_for_all();  // the folder is rank 0's
    set_log_level(LogLevel::info);
  }

  CurateConfig config(const std::string& out) const {
    CurateConfig config = small_pass("synthetic:?frames=2&classes=4&size=16&seed=1", shared_ / out);
    config.samples = 100;
    return config;
  }
  // In one process.
  void select_alone(const CurateConfig& config) {
    if (ranks_.first()) curate(config, *encoder_);
    ranks_.wait_for_all();
  }

  Ranks& ranks_ = ranks_of_process();
  const fs::path shared_ = ranks_.from_first(folder_.string());
  const std::shared_ptr<Objective> encoder_ = narrow_model();
};

TEST_F(RanksCurate, LeavesTheFilesOfOneProcess) {
  for (const Quota per : {Quota::whole, Quota::label}) {
    const std::string name = per == Quota::whole ? "whole" : "labels";
    auto alone = config(name + "-alone"), together = config(name + "-together");
    alone.per = together.per = per;
    select_alone(alone);
    const auto result = curate(together, *encoder_, ranks_);
    if (!ranks_.first()) continue;
    EXPECT_TRUE(result.finished);
    EXPECT_EQ(result.samples, 100);
    const auto files = folder_contents(together.out);
    EXPECT_TRUE(files.contains("selection.csv") && files.contains("assignments.csv"));
    EXPECT_EQ(files, folder_contents(alone.out));
  }
}

TEST_F(RanksCurate, LeavesTheFilesOfOneProcessFromAFolderWithBadPictures) {
  const fs::path photos = shared_ / "photos";
  if (ranks_.first()) {
    fs::create_directories(photos);
    const auto scenes = open_stream("synthetic:?frames=2&classes=4&size=16&seed=1&samples=90");
    while (const auto scene = scenes->next()) {
      auto bytes = encode_png(scene->picture);
      if (scene->index % 37 == 5) bytes.resize(bytes.size() / 2);
      write_atomically(photos / cat(1000 + scene->index, ".png"), bytes);
    }
  }
  ranks_.wait_for_all();
  const auto from_photos = [&](const std::string& out) {
    CurateConfig all = config(out);
    all.stream = cat("folder:", encode_percent(photos.string()));
    all.samples = 0;
    return all;
  };
  select_alone(from_photos("alone"));
  const auto result = curate(from_photos("together"), *encoder_, ranks_);
  if (!ranks_.first()) return;
  EXPECT_EQ(result.samples, 87);
  EXPECT_EQ(result.skipped.begin()->second, 3);
  EXPECT_EQ(folder_contents(shared_ / "together"), folder_contents(shared_ / "alone"));
}

TEST_F(RanksCurate, StopsOnAllAndContinuesAsAnyNumber) {
  const bool is_last = ranks_.rank() == ranks_.size() - 1;
  for (const int batches : {1, 3}) {
    for (const bool begun_alone : {false, true}) {
      SCOPED_TRACE(cat(batches, begun_alone ? " alone" : " together"));
      auto begun = config(cat("out-", batches, begun_alone));
      begun.samples = 0;  // it never ends
      StoppingEncoder stopping(encoder_, is_last || begun_alone ? batches : 0);
      CurateResult stopped;
      if (!begun_alone) stopped = curate(begun, stopping, ranks_);
      if (begun_alone && ranks_.first()) stopped = curate(begun, stopping);
      EXPECT_FALSE(stopped.finished);

      auto rest = begun;
      rest.samples = std::stoll(ranks_.from_first(std::to_string(stopped.samples))) + 50;
      if (begun_alone) {
        curate(rest, *encoder_, ranks_);
      } else {
        select_alone(rest);
      }
      auto whole = rest;
      whole.out += "-whole";
      select_alone(whole);
      if (!ranks_.first()) continue;
      EXPECT_EQ(folder_contents(rest.out), folder_contents(whole.out));
    }
  }
}

TEST_F(RanksCurate, NeedsTheSameSettings) {
  if (ranks_.alone()) return;
  auto other = config("out");
  if (!ranks_.first()) other.encoder = "a newer one";
  EXPECT_THAT([&] { curate(other, *encoder_, ranks_); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("the settings of rank 1 differ")));
  EXPECT_FALSE(fs::exists(other.out));
}

}  // namespace
}  // namespace riffle
