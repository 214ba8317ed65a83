// A test fixture with a folder that a stream watches.
#pragma once

#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "riffle/base/text.h"
#include "riffle/stream/stream.h"
#include "riffle/stream/testing/picture_folder.h"
#include "riffle/stream/uri.h"

namespace riffle {

class WatchedFolder : public PictureFolder {
 protected:
  WatchedFolder() { std::filesystem::create_directory(watched_); }

  static std::string png(int level) {
    const auto bytes = solid_png(level);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  static void put(const std::filesystem::path& path, int level = 100) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << png(level);
  }
  std::unique_ptr<Stream> open(const std::string& options = "") {
    return open_stream(cat("folder:", encode_percent(watched_.string()), "?watch=1&", options));
  }
  std::string relative(const Sample& sample) const {
    return std::filesystem::path(sample.key).lexically_relative(watched_).string();
  }
  // Returns the next sample's path, or "nothing" if the stream ends. Fails, and stops the stream,
  // if none comes in time.
  std::string next(Stream& stream) const {
    auto sample = std::async(std::launch::async, [&] { return stream.next(); });
    if (sample.wait_for(std::chrono::seconds(20)) != std::future_status::ready) {
      stream.stop();
      ADD_FAILURE() << "nothing came";
    }
    const auto come = sample.get();
    return come ? relative(*come) : "nothing";
  }

  // Inside folder_, so that tests can also use what is beside it.
  const std::filesystem::path watched_ = folder_ / "watched";
};

}  // namespace riffle
