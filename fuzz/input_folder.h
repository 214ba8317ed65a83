// A folder in memory for parsers that read files: each input is written there first.
#pragma once

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

#include "fuzz/targets.h"
#include <unistd.h>

#include "riffle/base/error.h"
#include "riffle/base/testing/temp_root.h"

namespace riffle::fuzz {

// Removed when the process ends in good order.
class InputFolder {
 public:
  InputFolder() {
    std::string name = (temp_root() / "riffle-fuzz-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
      throw std::filesystem::filesystem_error("mkdtemp", name, {errno, std::generic_category()});
    }
    path_ = name;
  }
  ~InputFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  InputFolder(const InputFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

  std::filesystem::path put(const std::string& name, Bytes bytes) const {
    const auto path = path_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    return path;
  }
  std::filesystem::path put(const std::string& name, std::string_view text) const {
    return put(name, std::as_bytes(std::span(text)));
  }

 private:
  std::filesystem::path path_;
};

inline std::string text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Calls `read` and lets Error pass as the answer it is, so that what follows is tried too.
template <typename Read>
void may_refuse(const Read& read) {
  try {
    read();
  } catch (const Error&) {
  }
}

}  // namespace riffle::fuzz
