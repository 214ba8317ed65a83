#include "riffle/stream/raw/raw.h"

#include <fstream>

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/stream/skip_log.h"

namespace riffle {
namespace {

class RawStream : public Stream {
 public:
  RawStream(const std::string& path, int width, int height)
      : path_(path), frame_(width, height), file_(path, std::ios::binary | std::ios::ate) {
    if (!file_) throw Error(cat(path, " cannot be read"));
    const auto bytes = static_cast<std::int64_t>(file_.tellg());
    frames_ = bytes / frame_bytes();
    if (frames_ == 0) {
      throw Error(cat(path, " holds ", bytes, " bytes; a frame of ", width, " x ", height,
                      " px has ", frame_bytes()));
    }
    if (bytes % frame_bytes() != 0) skipped_.add(path, "truncated", "at its end");
    go_to(0);
  }

  std::optional<Sample> next() override {
    if (next_ == frames_) return std::nullopt;
    if (!file_.read(reinterpret_cast<char*>(frame_.rgb.data()), frame_bytes())) {
      throw Error(cat(path_, " became shorter while it was read"), ErrorKind::failure);
    }
    Sample sample;
    sample.picture = frame_;
    sample.index = static_cast<std::uint64_t>(next_);
    sample.clip = 0;
    sample.key = cat(path_, " frame ", next_++);
    return sample;
  }

  std::string position() const override { return std::to_string(next_); }

  void seek(const std::string& position) override {
    const auto frame = parse_integer(position, cat("a position in ", path_));
    if (frame < 0 || frame > frames_) {
      throw Error(
          cat("'", position, "' is not a position in ", path_, ": it has ", frames_, " frames"));
    }
    go_to(frame);
  }

  std::map<std::string, std::int64_t> skipped() const override { return skipped_.counts(); }

 private:
  std::streamoff frame_bytes() const { return static_cast<std::streamoff>(frame_.rgb.size()); }

  void go_to(std::int64_t frame) {
    file_.clear();
    file_.seekg(frame * frame_bytes());
    next_ = frame;
  }

  const std::string path_;
  Picture frame_;
  std::ifstream file_;
  SkipLog skipped_;
  std::int64_t frames_ = 0;
  std::int64_t next_ = 0;
};

}  // namespace

std::unique_ptr<Stream> open_raw(Uri& uri) {
  constexpr int kMost = 1 << 14;
  for (const char* key : {"width", "height"}) uri.require(key, "raw:FILE?width=64&height=48");
  const auto width = static_cast<int>(uri.get_integer("width", 0, 1, kMost));
  const auto height = static_cast<int>(uri.get_integer("height", 0, 1, kMost));
  return std::make_unique<RawStream>(uri.path(), width, height);
}

}  // namespace riffle
