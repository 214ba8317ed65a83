#include "riffle/stream/shards/label.h"

#include <algorithm>
#include <cstdint>

#include <nlohmann/json.hpp>

namespace riffle {
namespace {

constexpr std::size_t kMaxLabel = 256;
constexpr int kMaxDepth = 64;

std::optional<std::string> as_label(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const auto begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return std::nullopt;
  text = text.substr(begin, text.find_last_not_of(kBlank) + 1 - begin);
  const bool plain = std::none_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < ' ' || c == '\x7f';
  });
  if (text.size() > kMaxLabel || !plain) return std::nullopt;
  return std::string(text);
}

// Looks for one key without building the document, so that a hostile one costs nothing. Every
// function returns whether to continue.
class FindLabel : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit FindLabel(const std::string& key) : key_(key) {}

  std::optional<std::string> take() { return std::move(label_); }

  bool key(string_t& name) override {
    wanted_ = depth_ == 1 && name == key_;
    return true;
  }
  bool string(string_t& text) override { return scalar(text); }
  bool number_integer(number_integer_t value) override { return scalar(std::to_string(value)); }
  bool number_unsigned(number_unsigned_t value) override { return scalar(std::to_string(value)); }
  bool null() override { return !wanted_; }
  bool boolean(bool) override { return !wanted_; }
  bool number_float(number_float_t, const string_t&) override { return !wanted_; }
  bool binary(binary_t&) override { return !wanted_; }
  bool start_object(std::size_t) override { return deeper(); }
  bool start_array(std::size_t) override { return deeper(); }
  bool end_object() override { return shallower(); }
  bool end_array() override { return shallower(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  bool scalar(const std::string& text) {
    if (wanted_) label_ = as_label(text);
    return !wanted_;
  }
  bool deeper() { return !wanted_ && ++depth_ <= kMaxDepth; }
  bool shallower() {
    --depth_;
    return true;
  }

  const std::string& key_;
  int depth_ = 0;
  bool wanted_ = false;
  std::optional<std::string> label_;
};

}  // namespace

std::optional<std::string> label_from_cls(std::string_view text) { return as_label(text); }

std::optional<std::string> label_from_json(std::string_view text, const std::string& key) {
  FindLabel find(key);
  nlohmann::json::sax_parse(text, &find);
  return find.take();
}

std::string label_from_folder(std::string_view name) {
  const auto end = name.rfind('/');
  if (end == std::string_view::npos) return "";
  const auto folder = name.substr(0, end);
  const auto begin = folder.rfind('/');
  return std::string(begin == std::string_view::npos ? folder : folder.substr(begin + 1));
}

}  // namespace riffle
