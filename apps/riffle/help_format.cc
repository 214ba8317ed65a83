#include "apps/riffle/help_format.h"

#include <vector>

#include "riffle/base/text.h"

namespace riffle {
namespace {

constexpr std::size_t kWidth = 80;
constexpr std::size_t kMeaningsAt = 26;

std::vector<std::string> wrapped(const std::string& text, std::size_t width) {
  std::vector<std::string> lines(1);
  for (const auto& word : split(text, ' ')) {
    std::string& line = lines.back();
    if (!line.empty() && line.size() + 1 + word.size() > width) {
      lines.push_back(word);
    } else {
      line += line.empty() ? word : ' ' + word;
    }
  }
  return lines;
}

// A name that is too long for its column stands on a line of its own.
std::string entry(const std::string& name, const std::string& meaning) {
  std::string text = "  " + name;
  if (meaning.empty()) return text + '\n';
  if (text.size() + 2 > kMeaningsAt) {
    text += '\n' + std::string(kMeaningsAt, ' ');
  } else {
    text.resize(kMeaningsAt, ' ');
  }
  return text + join(wrapped(meaning, kWidth - kMeaningsAt), '\n' + std::string(kMeaningsAt, ' ')) +
         '\n';
}

}  // namespace

std::string HelpFormat::make_option(const CLI::Option* option, bool is_positional) const {
  return entry(make_option_name(option, is_positional) + make_option_opts(option),
               make_option_desc(option));
}

std::string HelpFormat::make_subcommand(const CLI::App* command) const {
  return entry(command->get_display_name(true), command->get_description());
}

}  // namespace riffle
