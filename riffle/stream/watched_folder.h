// A watched folder of its own for each test, gone afterwards.
#pragma once

#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "riffle/base/text.h"
#include "riffle/stream/made_folder.h"
#include "riffle/stream/stream.h"
#include "riffle/stream/uri.h"

namespace riffle {

class WatchedFolder : public MadeFolder {
 protected:
  void SetUp() override {
    MadeFolder::SetUp();
    base_ = root_;
    root_ /= "watched";
    std::filesystem::create_directory(root_);
  }
  void TearDown() override {
    root_ = base_;
    MadeFolder::TearDown();
  }

  static std::string png(int level) {
    const auto bytes = solid_png(level);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  static void put(const std::filesystem::path& path, int level = 100) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << png(level);
  }
  std::unique_ptr<Stream> open(const std::string& options = "") {
    return open_stream(cat("folder:", encode_percent(root_.string()), "?watch=1&", options));
  }
  std::string relative(const Sample& sample) const {
    return std::filesystem::path(sample.key).lexically_relative(root_).string();
  }
  // The following sample's path; "nothing" when the stream ends. Fails, and stops the stream, when
  // none comes in time.
  std::string next(Stream& stream) const {
    auto sample = std::async(std::launch::async, [&] { return stream.next(); });
    if (sample.wait_for(std::chrono::seconds(20)) != std::future_status::ready) {
      stream.stop();
      ADD_FAILURE() << "nothing came";
    }
    const auto come = sample.get();
    return come ? relative(*come) : "nothing";
  }

  std::filesystem::path base_;  // beside the folder that is watched
};

}  // namespace riffle
