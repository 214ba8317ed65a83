// A file of URLs, read line by line as it is needed.
//
// A line has a URL and, after a space or tab, possibly a label; empty lines and those that begin
// with # are ignored. The file may be of any size. Not thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

namespace riffle {

// The beginning of a line: the number of lines and bytes before it.
struct UrlPlace {
  std::int64_t line = 0;
  std::int64_t offset = 0;
};

struct UrlEntry {
  std::string url;  // empty if the line is not a URL, such as one of many thousand characters
  std::string label;
  std::int64_t line = 0;  // its number, from 1
  UrlPlace after;
};

class UrlList {
 public:
  // Throws Error if the file cannot be read, or no line begins at that place.
  UrlList(const std::filesystem::path& path, UrlPlace start);

  // Returns the next entry, or nothing at the end. Throws Error if the file can no longer be read.
  std::optional<UrlEntry> next();

 private:
  bool is_at_a_line();
  std::optional<UrlEntry> read_entry();
  std::optional<std::string> read_line();

  const std::filesystem::path path_;
  std::filebuf file_;
  UrlPlace place_;
};

}  // namespace riffle
