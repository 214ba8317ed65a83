// A test fixture with a temporary folder, and pictures to put there.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "riffle/base/log.h"
#include "riffle/base/testing/temp_folder.h"
#include "riffle/image/codec.h"
#include "riffle/stream/stream.h"

namespace riffle {

inline Picture solid_picture(int level) {
  Picture picture(8, 6);
  std::fill(picture.rgb.begin(), picture.rgb.end(), static_cast<std::uint8_t>(level));
  return picture;
}
inline std::vector<std::byte> solid_png(int level) { return encode_png(solid_picture(level)); }

class PictureFolder : public TempFolder {
 protected:
  PictureFolder() { set_log_level(LogLevel::quiet); }
  ~PictureFolder() override { set_log_level(LogLevel::info); }

  // Writes without the flushes of write_atomically, which tests would wait for a thousand times.
  void put_bytes(const std::filesystem::path& name, std::span<const std::byte> bytes) const {
    std::filesystem::create_directories((folder_ / name).parent_path());
    std::ofstream out(folder_ / name, std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes.data()),
              static_cast<std::streamsize>(bytes.size()));
    ASSERT_TRUE(out.flush());
  }
  void put_text(const std::filesystem::path& name, const std::string& text) const {
    put_bytes(name, std::as_bytes(std::span(text)));
  }

  // Returns the levels of the solid pictures that the stream still gives.
  static std::vector<int> levels(Stream& stream) {
    std::vector<int> all;
    while (const auto sample = stream.next()) all.push_back(sample->picture.rgb.at(0));
    return all;
  }
};

}  // namespace riffle
