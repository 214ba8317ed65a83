// A stream's address: scheme:path?key=value&key=value.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace riffle {

// Options are read by name; `refuse_unknown` then throws for any that nobody asked for. %XX in path and values is decoded.
class Uri {
 public:
  explicit Uri(const std::string& text);

  const std::string& text() const { return text_; }
  const std::string& scheme() const { return scheme_; }
  const std::string& path() const { return path_; }

  std::string get(const std::string& key, const std::string& fallback);
  // Throws Error unless the value lies in [low, high].
  std::int64_t get_integer(const std::string& key, std::int64_t fallback, std::int64_t low, std::int64_t high);
  double get_number(const std::string& key, double fallback, double low, double high);
  bool get_bool(const std::string& key, bool fallback);
  // Throws Error unless the value is one of `choices`; the first is the default.
  std::string get_choice(const std::string& key, const std::vector<std::string>& choices);

  void refuse_unknown() const;

 private:
  const std::string* find(const std::string& key);

  std::string text_;
  std::string scheme_;
  std::string path_;
  std::map<std::string, std::string> options_;
  std::set<std::string> asked_;
};

}  // namespace riffle
