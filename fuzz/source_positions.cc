// Places to continue at, in sources that read files.

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <stop_token>
#include <thread>
#include <vector>

#include "fuzz/input_folder.h"
#include "fuzz/targets.h"

#include "riffle/base/file.h"
#include "riffle/base/text.h"
#include "riffle/stream/stream.h"

namespace riffle::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOutside = "what no position leads to";

// A folder, a shard, a film and a list of URLs, made of the seeds of other targets. No URL of the
// list is ever asked: private addresses are not.
class Sources {
 public:
  Sources() {
    const fs::path corpus = fs::path(RIFFLE_SOURCE_DIR) / "fuzz/corpus";
    const auto copy = [&](const char* from, const std::string& to) {
      inputs_.put(to, read_bytes(corpus / from));
    };
    for (const char* name : {"photos/a/1.png", "photos/a/2.png", "photos/b/3.png"}) {
      copy("png/rgb", name);
    }
    copy("png/rgb", cat(kOutside, ".png"));
    copy("shard/ustar.tar", "shards/0.tar");
    copy("shard/gzip.tar.gz", "shards/1.tar.gz");
    copy("film/mpeg4.mkv", "films/0.mkv");
    copy("film/h264.mp4", "films/1.mp4");
    inputs_.put("urls.txt", "http://127.0.0.1/1.jpg a\nhttp://127.0.0.1/2.jpg b\n");
    const std::string root = inputs_.path().string();
    uris_ = {cat("folder:", root, "/photos?size=8&threads=1"),
             cat("folder:", root, "/photos?order=time&size=8&threads=1"),
             cat("folder:", root, "/photos?watch=1&size=8&threads=1"),
             cat("shards:", root, "/shards/*?size=8&threads=1"),
             cat("video:", root, "/films?size=8&threads=1"),
             cat("urls:", root, "/urls.txt?threads=1")};
  }

  // Returns the position with "@" for the folder of all.
  std::string position(const std::string& text) const {
    return join(split(text, '@'), inputs_.path().string());
  }

  const std::string& uri(std::byte which) const {
    return uris_[static_cast<std::size_t>(which) % uris_.size()];
  }

 private:
  InputFolder inputs_;
  std::vector<std::string> uris_;
};

// Ends a stream that waits for more after a moment.
class Patience {
 public:
  explicit Patience(Stream& stream)
      : thread_([this, &stream](const std::stop_token& done) {
          std::unique_lock lock(mutex_);
          ended_.wait_for(lock, done, std::chrono::milliseconds(20), [] { return false; });
          stream.stop();
        }) {}

 private:
  std::mutex mutex_;
  std::condition_variable_any ended_;
  std::jthread thread_;
};

}  // namespace

// The first byte picks the source, the rest is a position.
void read_source_position(Bytes bytes) {
  static const Sources sources;
  if (bytes.empty()) return;
  const auto stream = open_stream(sources.uri(bytes[0]));
  stream->seek(sources.position(text_of(bytes.subspan(1))));
  std::unique_ptr<Patience> patience;
  if (stream->endless()) patience = std::make_unique<Patience>(*stream);
  for (int i = 0; i < 4; ++i) {
    const auto sample = stream->next();
    if (!sample) break;
    if (sample->key.find(kOutside) != std::string::npos) {
      throw std::logic_error("read a file that is not of the source");
    }
  }
  patience.reset();
  // What a stream says of itself, it takes back.
  stream->seek(stream->position());
}

}  // namespace riffle::fuzz
