// A test fixture with a temporary folder, and films to put there.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "riffle/base/text.h"
#include "riffle/stream/stream.h"
#include "riffle/stream/testing/generated_video.h"
#include "riffle/stream/testing/picture_folder.h"
#include "riffle/stream/uri.h"

namespace riffle {

class VideoFolder : public PictureFolder {
 protected:
  void SetUp() override {
    if (!can_make("libx264")) GTEST_SKIP() << "FFmpeg here has no libx264 to make films with";
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  void make(const std::string& name, const GeneratedVideo& video = {}) const {
    std::filesystem::create_directories((folder_ / name).parent_path());
    make_video(folder_ / name, video);
  }
  // `name` may hold %XX.
  std::string uri(const std::string& name, const std::string& options = "") const {
    return cat("video:", encode_percent(folder_.string()), "/", name, "?", options);
  }
  std::unique_ptr<Stream> open(const std::string& name, const std::string& options = "") const {
    return open_stream(uri(name, options));
  }
  // Returns "a.mp4#3" for a frame of a film in the folder.
  std::string relative(const Sample& sample) const {
    return std::filesystem::path(sample.key).lexically_relative(folder_).string();
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
};

}  // namespace riffle
