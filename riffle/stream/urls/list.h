// A file of URLs, read line by line as it is needed.
//
// A line holds a URL and, behind a space or tab, a label if there is one; empty lines and those
// that begin with # are passed over. The file may be of any size. Used by one thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

namespace riffle {

// The beginning of a line: how many lines and bytes lie before it.
struct UrlPlace {
  std::int64_t line = 0;
  std::int64_t offset = 0;
};

struct UrlEntry {
  std::string url;  // empty: the line is no URL, such as one of many thousand characters
  std::string label;
  std::int64_t line = 0;  // its number, from 1
  UrlPlace after;
};

class UrlList {
 public:
  // Throws Error when the file cannot be read, or no line begins at that place.
  UrlList(const std::filesystem::path& path, UrlPlace start);

  // The following entry, or nothing at the end. Throws Error when the file cannot be read any more.
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
