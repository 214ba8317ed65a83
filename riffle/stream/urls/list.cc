#include "riffle/stream/urls/list.h"

#include <algorithm>
#include <string_view>

#include "riffle/base/error.h"
#include "riffle/base/text.h"

namespace riffle {
namespace {

constexpr std::size_t kMaxLine = 16384;
constexpr std::string_view kBlank = " \t\r";

std::string_view without_spaces(std::string_view text) {
  const auto begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) + 1 - begin);
}

bool is_plain(std::string_view text) {
  return std::none_of(text.begin(), text.end(),
                      [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; });
}

// A file that opened but cannot be read (a disk that fails, a network drive that is gone) makes the
// buffer throw.
[[noreturn]] void throw_unreadable(const std::filesystem::path& path,
                                   const std::ios_base::failure& why) {
  throw Error(cat("cannot read the list of URLs ", path.string(), ": ", why.code().message()),
              ErrorKind::failure);
}

}  // namespace

UrlList::UrlList(const std::filesystem::path& path, UrlPlace start) : path_(path), place_(start) {
  if (std::filesystem::is_directory(path) ||
      file_.open(path, std::ios::in | std::ios::binary) == nullptr) {
    throw Error(cat("cannot read the list of URLs ", path.string()));
  }
  if (start.offset == 0) return;
  try {
    if (is_at_a_line()) return;
  } catch (const std::ios_base::failure& why) {
    throw_unreadable(path_, why);
  }
  throw Error(cat("no line of ", path.string(), " begins at byte ", start.offset,
                  "; the list was changed since the position was saved"));
}

std::optional<UrlEntry> UrlList::next() {
  try {
    return read_entry();
  } catch (const std::ios_base::failure& why) {
    throw_unreadable(path_, why);
  }
}

// Goes to the place, which is not the beginning of the file, and returns whether a line begins
// there. If the last line was read before it had an end, steps over the one that it has got since.
bool UrlList::is_at_a_line() {
  constexpr auto kEnd = std::filebuf::traits_type::eof();
  const auto before_it = place_.offset - 1;
  const bool there = file_.pubseekpos(before_it) == std::streampos(before_it);
  const auto before = there ? file_.sbumpc() : kEnd;
  if (before == '\n' || before == kEnd) return before == '\n';
  auto at = file_.sbumpc();
  if (at == '\r') {
    ++place_.offset;
    at = file_.sbumpc();
  }
  if (at == '\n') ++place_.offset;
  return at == '\n' || at == kEnd;
}

std::optional<UrlEntry> UrlList::read_entry() {
  while (auto line = read_line()) {
    const auto text = without_spaces(*line);
    if (text.empty() || text.starts_with('#')) continue;
    UrlEntry entry;
    entry.line = place_.line;
    entry.after = place_;
    const auto end = std::min(text.find_first_of(kBlank), text.size());
    if (line->size() < kMaxLine && is_plain(text.substr(0, end))) {
      entry.url = text.substr(0, end);
      entry.label = without_spaces(text.substr(end));
    }
    return entry;
  }
  return std::nullopt;
}

// Reads a line, but only the beginning of one that is too long.
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
