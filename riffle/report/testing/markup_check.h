// For tests: checks that markup is well-formed XML, with a small strict reader of what this room
// writes.
#pragma once

#include <cctype>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace riffle {

// Empty when every tag is closed in order, every attribute quoted and named once, and every "&"
// begins a character reference; otherwise what is wrong first.
inline std::string markup_fault(std::string_view text) {
  const auto reference_ok = [](std::string_view rest) {
    for (const std::string_view name : {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"}) {
      if (rest.starts_with(name)) return true;
    }
    return false;
  };
  const auto name_end = [&](std::size_t at) {
    while (at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) != 0 ||
                                text[at] == '-' || text[at] == ':')) {
      ++at;
    }
    return at;
  };
  const auto skip_space = [&](std::size_t at) {
    while (at < text.size() && std::isspace(static_cast<unsigned char>(text[at])) != 0) ++at;
    return at;
  };

  std::vector<std::string> open;
  std::size_t at = 0;
  if (text.starts_with("<!DOCTYPE html>")) at = 15;
  while (at < text.size()) {
    if (text[at] == '&' && !reference_ok(text.substr(at))) return "stray &";
    if (text[at] != '<') {
      ++at;
      continue;
    }
    const bool closing = at + 1 < text.size() && text[at + 1] == '/';
    const std::size_t begin = at + (closing ? 2 : 1);
    at = name_end(begin);
    const std::string name(text.substr(begin, at - begin));
    if (name.empty()) return "stray <";
    if (closing) {
      if (open.empty() || open.back() != name) return "</" + name + "> closes nothing open";
      open.pop_back();
      if (at >= text.size() || text[at] != '>') return "</" + name + " has no >";
      ++at;
      continue;
    }
    std::set<std::string> attributes;
    while (true) {
      at = skip_space(at);
      if (at >= text.size()) return "<" + name + " has no end";
      if (text[at] == '>' || text[at] == '/') break;
      const std::size_t attribute = at;
      at = name_end(at);
      const std::string key(text.substr(attribute, at - attribute));
      if (key.empty() || !attributes.insert(key).second) return "bad attribute in <" + name + ">";
      if (text.substr(at, 2) != "=\"") return "attribute " + key + " is not quoted";
      for (at += 2; at < text.size() && text[at] != '"'; ++at) {
        if (text[at] == '<') return "< inside attribute " + key;
        if (text[at] == '&' && !reference_ok(text.substr(at))) return "stray & in " + key;
      }
      ++at;
    }
    if (text[at] == '/') {
      if (text.substr(at, 2) != "/>") return "<" + name + " ends badly";
      at += 2;
    } else {
      open.push_back(name);
      ++at;
    }
  }
  return open.empty() ? "" : "<" + open.back() + "> stays open";
}

// The texts between each `begin` and the next `end`.
inline std::vector<std::string> texts_between(std::string_view text, std::string_view begin,
                                              std::string_view end) {
  std::vector<std::string> found;
  for (auto at = text.find(begin); at != std::string_view::npos; at = text.find(begin, at)) {
    at += begin.size();
    const auto stop = text.find(end, at);
    if (stop == std::string_view::npos) break;
    found.emplace_back(text.substr(at, stop - at));
  }
  return found;
}

inline int count_of(std::string_view text, std::string_view part) {
  int count = 0;
  for (auto at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

}  // namespace riffle
