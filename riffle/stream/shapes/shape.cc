#include "riffle/stream/shapes/shape.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <string_view>
#include <utility>

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/stream/shapes/clips.h"
#include "riffle/stream/shapes/junk.h"
#include "riffle/stream/shapes/lifelong.h"
#include "riffle/stream/shapes/limit.h"
#include "riffle/stream/shapes/loop.h"
#include "riffle/stream/shapes/mix.h"
#include "riffle/stream/shapes/reorder.h"
#include "riffle/stream/shapes/reupload.h"
#include "riffle/stream/shapes/still.h"
#include "riffle/stream/shapes/subsample.h"
#include "riffle/stream/shapes/throttle.h"
#include "riffle/stream/shapes/zipf.h"

namespace riffle {
namespace {

struct KnownShape {
  std::string name;
  std::unique_ptr<Stream> (*open)(Uri& options, const StreamFactory& below);
  bool takes_address = false;
};

const std::vector<KnownShape>& known_shapes() {
  static const std::vector<KnownShape> kShapes = {
      {"clips", shape_clips},         {"decorrelate", shape_decorrelate},
      {"junk", shape_junk},           {"lifelong", shape_lifelong},
      {"limit", shape_limit},         {"loop", shape_loop},
      {"mix", shape_mix, true},       {"reupload", shape_reupload},
      {"shuffle", shape_shuffle},     {"still", shape_still},
      {"subsample", shape_subsample}, {"throttle", shape_throttle},
      {"zipf", shape_zipf},
  };
  return kShapes;
}

const KnownShape& find_shape(const Uri& shape) {
  std::vector<std::string> names;
  for (const auto& known : known_shapes()) {
    names.push_back(known.name);
    if (known.name != shape.scheme()) continue;
    if (!shape.path().empty() && !known.takes_address) {
      throw Error(
          cat("'", shape.path(), "' in '", shape.text(), "' is not an option; expected key=value"));
    }
    return known;
  }
  throw Error(unknown_name("shape", shape.scheme(), names));
}

// The name at the beginning of a piece of the text, and the character after it (0: the end).
std::pair<std::string, char> leading_name(std::string_view piece) {
  const auto end = std::find_if_not(piece.begin(), piece.end(),
                                    [](unsigned char c) { return std::isalnum(c) || c == '_'; });
  const std::string name(piece.begin(), end);
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) return {"", '?'};
  return {name, end == piece.end() ? '\0' : *end};
}

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(' ');
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

struct ShapeText {
  std::string text;
  std::string name;
  std::string address;
  std::vector<std::pair<std::string, std::string>> options;

  // What follows the name's colon, or a comma.
  void add(const std::string& piece) {
    const auto [key, following] = leading_name(piece);
    if (following == '=') {
      options.emplace_back(key, piece.substr(key.size() + 1));
    } else if (options.empty()) {
      address += (address.empty() ? "" : ",") + piece;
    } else {
      options.back().second += "," + piece;
    }
  }

  Uri finish() const {
    std::map<std::string, std::string> values;
    for (const auto& [key, value] : options) {
      if (!values.emplace(key, decode_percent(value)).second) {
        throw Error(cat("option '", key, "' stands twice in '", text, "'"));
      }
    }
    return {text, name, address, std::move(values)};
  }
};

}  // namespace

std::vector<Uri> parse_shapes(const std::string& text) {
  std::vector<ShapeText> read;
  for (const auto& part : split(text, ',')) {
    const std::string piece = trimmed(part);
    if (piece.empty()) continue;
    const auto [name, following] = leading_name(piece);
    if (following == ':' || following == '\0') {
      read.push_back({piece, name, "", {}});
      if (following == ':' && piece.size() > name.size() + 1) {
        read.back().add(piece.substr(name.size() + 1));
      }
    } else if (read.empty()) {
      throw Error(cat("'", text,
                      "' is not a shape; expected NAME or NAME:key=value,..., such as "
                      "clips:length=64"));
    } else {
      read.back().text += "," + piece;
      read.back().add(piece);
    }
  }
  std::vector<Uri> shapes;
  for (const auto& shape : read) shapes.push_back(shape.finish());
  return shapes;
}

std::unique_ptr<Stream> open_shapes(const StreamFactory& source, const std::string& text) {
  // Each shape reads its options before it opens the stream below.
  StreamFactory open = source;
  for (const auto& shape : parse_shapes(text)) {
    const KnownShape& known = find_shape(shape);
    open = [&known, shape, below = std::move(open)] {
      Uri options = shape;
      return known.open(options, below);
    };
  }
  return open();
}

}  // namespace riffle
