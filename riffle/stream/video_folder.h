// A folder of its own for each test of `video:`, gone afterwards.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "riffle/base/file.h"
#include "riffle/base/log.h"
#include "riffle/base/text.h"
#include "riffle/stream/stream.h"
#include "riffle/stream/uri.h"
#include "riffle/stream/video_made.h"

namespace riffle {

class VideoFolder : public testing::Test {
 protected:
  void SetUp() override {
    if (!can_make("libx264")) GTEST_SKIP() << "FFmpeg here has no libx264 to make films with";
    std::string name = (std::filesystem::temp_directory_path() / "riffle-video-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root_ = name;
    set_log_level(LogLevel::quiet);
  }
  void TearDown() override {
    if (!root_.empty()) std::filesystem::remove_all(root_);
    set_log_level(LogLevel::info);
  }

  std::string path(const std::string& name) const { return (root_ / name).string(); }
  void make(const std::string& name, const MadeVideo& video = {}) const {
    std::filesystem::create_directories((root_ / name).parent_path());
    make_video(root_ / name, video);
  }
  void put(const std::string& name, std::span<const std::byte> bytes) const {
    std::filesystem::create_directories((root_ / name).parent_path());
    std::ofstream out(root_ / name, std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes.data()),
              static_cast<std::streamsize>(bytes.size()));
    ASSERT_TRUE(out.flush());
  }
  void put(const std::string& name, const std::string& text) const {
    put(name, std::as_bytes(std::span(text)));
  }

  // `name` may hold %XX.
  std::string uri(const std::string& name, const std::string& options = "") const {
    return cat("video:", encode_percent(root_.string()), "/", name, "?", options);
  }
  std::unique_ptr<Stream> open(const std::string& name, const std::string& options = "") const {
    return open_stream(uri(name, options));
  }
  // "a.mp4#3", for a film that is somewhere in the folder.
  std::string relative(const Sample& sample) const {
    return std::filesystem::path(sample.key).lexically_relative(root_).string();
  }
  std::vector<Sample> rest(Stream& stream) const {
    std::vector<Sample> samples;
    while (auto sample = stream.next()) samples.push_back(std::move(*sample));
    return samples;
  }
  std::vector<Sample> all(const std::string& name, const std::string& options = "") const {
    return rest(*open(name, options));
  }
  static std::vector<int> numbers(std::span<const Sample> samples) {
    std::vector<int> shown;
    for (const auto& sample : samples) shown.push_back(shown_number(sample.picture));
    return shown;
  }
  static std::vector<int> every(int step, int end) {
    std::vector<int> expected;
    for (int i = 0; i < end; i += step) expected.push_back(i);
    return expected;
  }

  std::filesystem::path root_;
};

inline void expect_same_frame(const Sample& a, const Sample& b) {
  EXPECT_EQ(a.key, b.key);
  EXPECT_EQ(a.index, b.index);
  EXPECT_EQ(a.clip, b.clip);
  EXPECT_EQ(a.label, b.label);
  EXPECT_TRUE(a.picture == b.picture) << a.key;
}

}  // namespace riffle
