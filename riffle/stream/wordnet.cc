#include "riffle/stream/wordnet.h"

#include <algorithm>
#include <sstream>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "riffle/base/error.h"
#include "riffle/base/file.h"
#include "riffle/base/text.h"

namespace riffle {
namespace {

constexpr std::string_view kRoot = "00001740";  // entity
constexpr std::size_t kOffsetDigits = 8;

// For every noun, the nouns just below it, by their offsets in the file.
using Hyponyms = std::unordered_map<std::string, std::vector<std::string>>;

// A line reads "offset file n words word id ... pointers symbol offset part source ... | gloss",
// the number of words in hexadecimal. Lines that begin with a space are the licence.
Hyponyms read_hyponyms(const std::filesystem::path& nouns) {
  std::istringstream file;
  try {
    file.str(read_text(nouns));
  } catch (const Error& missing) {
    throw Error(cat(missing.what(),
                    "; the WordNet nouns come with the package wordnet-base, or "
                    "give wordnet=FILE"));
  }
  Hyponyms hyponyms;
  std::string line;
  while (std::getline(file, line)) {
    if (line.empty() || line[0] == ' ') continue;
    std::istringstream fields(line);
    std::string offset, lexical_file, part, word, symbol, target, relation;
    int words = -1, pointers = -1;
    fields >> offset >> lexical_file >> part >> std::hex >> words >> std::dec;
    for (int i = 0; i < words && fields; ++i) fields >> word >> word;
    fields >> pointers;
    auto& below = hyponyms[offset];
    for (int i = 0; i < pointers && fields; ++i) {
      fields >> symbol >> target >> part >> relation;
      if (fields && (symbol == "~" || symbol == "~i")) below.push_back(target);
    }
    if (!fields || words < 1 || pointers < 0 || offset.size() != kOffsetDigits) {
      throw Error(
          cat(nouns.string(), " is not a file of WordNet nouns: '", line.substr(0, 60), "'"));
    }
  }
  if (!hyponyms.contains(std::string(kRoot))) {
    throw Error(cat(nouns.string(), " is not a file of WordNet nouns: it lacks the root ", kRoot));
  }
  return hyponyms;
}

bool is_wnid(const std::string& label) {
  return label.size() == 1 + kOffsetDigits && label[0] == 'n' &&
         std::all_of(label.begin() + 1, label.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::vector<std::string> wordnet_order(const std::vector<std::string>& labels,
                                       const std::filesystem::path& nouns) {
  for (const auto& label : labels) {
    if (is_wnid(label)) continue;
    throw Error(cat("the label '", label,
                    "' is not a WordNet id such as n01443537; give list=FILE "
                    "with all labels in their order"));
  }
  const Hyponyms hyponyms = read_hyponyms(nouns);
  std::unordered_set<std::string> wanted(labels.begin(), labels.end());
  std::unordered_set<std::string> visited;
  std::vector<std::string> ordered;
  std::vector<std::string> to_visit = {std::string(kRoot)};
  while (!to_visit.empty()) {
    const std::string offset = std::move(to_visit.back());
    to_visit.pop_back();
    if (!visited.insert(offset).second) continue;  // a noun may have several above it
    if (wanted.erase("n" + offset) > 0) ordered.push_back("n" + offset);
    const auto below = hyponyms.find(offset);
    if (below == hyponyms.end()) continue;
    to_visit.insert(to_visit.end(), below->second.rbegin(), below->second.rend());
  }
  if (!wanted.empty()) {
    throw Error(cat("the label '", *std::min_element(wanted.begin(), wanted.end()),
                    "' is not among the WordNet nouns of ", nouns.string()));
  }
  return ordered;
}

}  // namespace riffle
