#include "riffle/stream/stream.h"

#include <vector>

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/stream/folder.h"
#include "riffle/stream/synthetic.h"
#include "riffle/stream/uri.h"

namespace riffle {
namespace {

using Open = std::unique_ptr<Stream> (*)(Uri&);

struct Source {
  std::string scheme;
  Open open;            // null: left out of this build
  std::string package;  // what to install for it, on Debian
};

const std::vector<Source>& sources() {
  static const std::vector<Source> kSources = {
      {"folder", open_folder, ""},
      {"synthetic", open_synthetic, ""},
  };
  return kSources;
}

}  // namespace

std::unique_ptr<Stream> open_stream(const std::string& text) {
  Uri uri(text);
  std::vector<std::string> schemes;
  for (const auto& source : sources()) {
    schemes.push_back(source.scheme);
    if (source.scheme != uri.scheme()) continue;
    if (source.open == nullptr) {
      throw Error(cat(text, ": this riffle was built without ", source.scheme, ":; install ",
                      source.package, " and build again"));
    }
    auto stream = source.open(uri);
    uri.refuse_unknown();
    return stream;
  }
  throw Error(unknown_name("stream", uri.scheme(), schemes));
}

}  // namespace riffle
