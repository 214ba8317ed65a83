#include "riffle/stream/urls_list.h"

#include <algorithm>
#include <string_view>

#include "riffle/base/error.h"
#include "riffle/base/text.h"

namespace riffle {
namespace {

constexpr std::size_t kMaxLine = 16384;
constexpr std::string_view kBlank = " \t\r";

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) + 1 - begin);
}

bool is_plain(std::string_view text) {
  return std::none_of(text.begin(), text.end(),
                      [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; });
}

}  // namespace

UrlList::UrlList(const std::filesystem::path& path, UrlPlace start) : place_(start) {
  if (std::filesystem::is_directory(path) ||
      file_.open(path, std::ios::in | std::ios::binary) == nullptr) {
    throw Error(cat("cannot read the list of URLs ", path.string()));
  }
  if (start.offset == 0) return;
  const bool there = file_.pubseekpos(start.offset - 1) == std::streampos(start.offset - 1);
  const auto before = there ? file_.sbumpc() : std::filebuf::traits_type::eof();
  const bool at_end = file_.sgetc() == std::filebuf::traits_type::eof();
  if (before != '\n' && (before == std::filebuf::traits_type::eof() || !at_end)) {
    throw Error(cat("no line of ", path.string(), " begins at byte ", start.offset,
                    "; the list was changed since the position was saved"));
  }
}

std::optional<UrlEntry> UrlList::next() {
  while (auto line = read_line()) {
    const auto text = trimmed(*line);
    if (text.empty() || text.starts_with('#')) continue;
    UrlEntry entry;
    entry.line = place_.line;
    entry.after = place_;
    const auto end = std::min(text.find_first_of(kBlank), text.size());
    if (line->size() < kMaxLine && is_plain(text.substr(0, end))) {
      entry.url = text.substr(0, end);
      entry.label = trimmed(text.substr(end));
    }
    return entry;
  }
  return std::nullopt;
}

// Of a line that is too long only the beginning.
std::optional<std::string> UrlList::read_line() {
  constexpr auto kEnd = std::filebuf::traits_type::eof();
  std::string line;
  auto c = file_.sbumpc();
  if (c == kEnd) return std::nullopt;
  for (; c != kEnd; c = file_.sbumpc()) {
    ++place_.offset;
    if (c == '\n') break;
    if (line.size() < kMaxLine) line += std::filebuf::traits_type::to_char_type(c);
  }
  ++place_.line;
  return line;
}

}  // namespace riffle
