#include "riffle/stream/stream.h"

#include <vector>

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/stream/folder/folder.h"
#include "riffle/stream/shapes/shape.h"
#include "riffle/stream/shards/shards.h"
#include "riffle/stream/synthetic/synthetic.h"
#include "riffle/stream/uri.h"
#include "riffle/stream/urls/urls.h"
#ifdef RIFFLE_FFMPEG
#include "riffle/stream/video/video.h"
#endif

namespace riffle {
namespace {

using Open = std::unique_ptr<Stream> (*)(Uri&);

struct Source {
  std::string scheme;
  Open open;            // null if left out of this build
  std::string package;  // what to install for it, on Debian
};

const std::vector<Source>& sources() {
  static const std::vector<Source> kSources = {
      {"folder", open_folder, ""},
#ifdef RIFFLE_ARCHIVE
      {"shards", open_shards, ""},
#else
      {"shards", nullptr, "libarchive-dev"},
#endif
      {"synthetic", open_synthetic, ""},
#ifdef RIFFLE_CURL
      {"urls", open_urls, ""},
#else
      {"urls", nullptr, "libcurl4-openssl-dev"},
#endif
#ifdef RIFFLE_FFMPEG
      {"video", open_video, ""},
#else
      {"video", nullptr, "libavformat-dev, libavcodec-dev, libavutil-dev and libswscale-dev"},
#endif
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

std::unique_ptr<Stream> open_stream(const std::string& uri, const std::string& shapes) {
  return open_shapes([uri] { return open_stream(uri); }, shapes);
}

}  // namespace riffle
