// The order of classes in the WordNet noun hierarchy.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace riffle {

// Where Debian's package wordnet-base (WordNet 3.0, which ImageNet's ids refer to) puts the nouns.
inline constexpr const char* kWordNetNouns = "/usr/share/wordnet/data.noun";

// Returns the given WordNet ids (n01443537: "n" and the noun's place in the file), each once, in
// the order in which a depth-first walk from the root ("entity") first meets them, hyponyms in the
// order of the file: dogs stand beside dogs, fruit beside fruit. Reads the whole file, 15 MB.
// Throws Error if it cannot be read or is damaged, and for a label that is not an id or not in the
// hierarchy.
std::vector<std::string> wordnet_order(const std::vector<std::string>& labels,
                                       const std::filesystem::path& nouns = kWordNetNouns);

}  // namespace riffle
