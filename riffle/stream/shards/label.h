// The label of a sample in a shard: from its .cls or .json member, or the folder in its name.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace riffle {

// Returns the label in a .cls member, one line of up to 256 characters, or nothing if it is not
// one.
std::optional<std::string> label_from_cls(std::string_view text);

// Returns the text or whole number under `key` at the top level of a .json member, or nothing if
// there is none or the text is not JSON.
std::optional<std::string> label_from_json(std::string_view text, const std::string& key);

// Returns the folder that holds the member: "cat" for "train/cat/1.jpg", "" for "1.jpg".
std::string label_from_folder(std::string_view name);

}  // namespace riffle
