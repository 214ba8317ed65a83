// The label of a sample in a shard: from its .cls or .json member, or the folder in its name.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace riffle {

// What a .cls member holds: one line of up to 256 characters. Nothing when it is no such thing.
std::optional<std::string> label_from_cls(std::string_view text);

// The text or whole number under `key` of a .json member, at its top level. Nothing when it is not
// there, or the text is no JSON.
std::optional<std::string> label_from_json(std::string_view text, const std::string& key);

// The folder that holds the member: "cat" for "train/cat/1.jpg", empty for "1.jpg".
std::string label_from_folder(std::string_view name);

}  // namespace riffle
