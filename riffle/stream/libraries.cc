#include "riffle/stream/libraries.h"

#include "riffle/base/text.h"

#ifdef RIFFLE_ARCHIVE
#include <archive.h>
#endif
#ifdef RIFFLE_CURL
#include <curl/curl.h>
#endif
#ifdef RIFFLE_FFMPEG
extern "C" {
#include <libavutil/avutil.h>
}
#endif
#ifdef RIFFLE_AVDEVICE
extern "C" {
#include <libavdevice/avdevice.h>
}
#endif

namespace riffle {

std::vector<Library> stream_libraries() {
  Library archive{"libarchive", {}, "shards: streams"};
  Library curl{"libcurl", {}, "urls: streams"};
  Library ffmpeg{"FFmpeg", {}, "video: streams"};
  Library devices{"libavdevice", {}, "cameras (video:/dev/...)"};
#ifdef RIFFLE_ARCHIVE
  archive.version = ARCHIVE_VERSION_ONLY_STRING;
#endif
#ifdef RIFFLE_CURL
  curl.version = curl_version_info(CURLVERSION_NOW)->version;
#endif
#ifdef RIFFLE_FFMPEG
  ffmpeg.version = av_version_info();
#endif
#ifdef RIFFLE_AVDEVICE
  devices.version = cat(avdevice_version() >> 16, '.', avdevice_version() >> 8 & 0xFF, '.',
                        avdevice_version() & 0xFF);
#endif
  return {archive, curl, ffmpeg, devices};
}

}  // namespace riffle
