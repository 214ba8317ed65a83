#include "riffle/stream/stream.h"

#include <vector>

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/stream/folder.h"
#include "riffle/stream/synthetic.h"
#include "riffle/stream/uri.h"

namespace riffle {

std::unique_ptr<Stream> open_stream(const std::string& text) {
  struct Source {
    std::string scheme;
    std::unique_ptr<Stream> (*open)(Uri&);
  };
  static const std::vector<Source> kSources = {{"folder", open_folder},
                                               {"synthetic", open_synthetic}};
  Uri uri(text);
  std::vector<std::string> schemes;
  for (const auto& source : kSources) {
    if (source.scheme == uri.scheme()) {
      auto stream = source.open(uri);
      uri.refuse_unknown();
      return stream;
    }
    schemes.push_back(source.scheme);
  }
  throw Error(unknown_name("stream", uri.scheme(), schemes));
}

}  // namespace riffle
