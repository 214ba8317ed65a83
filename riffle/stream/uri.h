// A stream's address: scheme:path?key=value&key=value.
//
// Options are read by name; `refuse_unknown` then throws for any that nobody asked for. %XX in path
// and values is decoded: a path with a question mark is written with %3F, a percent sign is %25.
// Throws Error if the text is not an address. The options of a shape (shapes/shape.h) are read in
// the same way.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace riffle {

// Write bytes other than plain printable ASCII as %XX, so that any path fits on one line of text,
// and read them back. Decoding throws Error if a percent sign is not followed by two hexadecimal
// digits.
std::string encode_percent(std::string_view bytes);
std::string decode_percent(std::string_view text);

// Returns an address, or shapes, with bytes that are not UTF-8 and control characters as %XX: the
// same one, as text that YAML and JSON hold and a terminal shows.
std::string text_address(std::string_view address);

class Uri {
 public:
  explicit Uri(const std::string& text);
  // Takes the parts, decoded, of a text in another form.
  Uri(std::string text, std::string scheme, std::string path,
      std::map<std::string, std::string> options);

  const std::string& text() const { return text_; }
  const std::string& scheme() const { return scheme_; }
  const std::string& path() const { return path_; }

  bool has(const std::string& key) { return find(key) != nullptr; }
  // Throws Error, quoting the example, if the option is not given. Call it after refuse_unknown(),
  // which says more about a misspelt name.
  void require(const std::string& key, const std::string& example);

  std::string get(const std::string& key, const std::string& fallback);
  // Throws Error unless the value is in [low, high].
  std::int64_t get_integer(const std::string& key, std::int64_t fallback, std::int64_t low,
                           std::int64_t high);
  double get_number(const std::string& key, double fallback, double low, double high);
  bool get_bool(const std::string& key, bool fallback);
  // Throws Error unless the value is one of `choices`; the first is the default.
  std::string get_choice(const std::string& key, const std::vector<std::string>& choices);

  void refuse_unknown() const;

 private:
  const std::string* find(const std::string& key);
  std::string naming(const std::string& key) const;

  std::string text_;
  std::string scheme_;
  std::string path_;
  std::map<std::string, std::string> options_;
  std::set<std::string> asked_;
};

}  // namespace riffle
