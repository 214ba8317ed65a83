#include "riffle/curate/originals.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <filesystem>
#include <iomanip>
#include <sstream>
#include <string_view>
#include <utility>

#include "riffle/base/text.h"
#include "riffle/image/codec.h"
#include "riffle/stream/shapes/shape.h"
#include "riffle/stream/uri.h"

namespace riffle {
namespace {

constexpr int kQuality = 95;
constexpr std::size_t kMostName = 72;  // a tar file takes 100 bytes

class WithOriginals : public Stream {
 public:
  explicit WithOriginals(std::unique_ptr<Stream> below) : below_(std::move(below)) {}

  std::optional<Sample> next() override {
    if (stopped_) return std::nullopt;
    auto sample = below_->next();
    if (sample && !sample->picture.file) {
      sample->picture.file =
          std::make_shared<const std::vector<std::byte>>(encode_jpeg(sample->picture, kQuality));
    }
    return sample;
  }
  std::string position() const override { return below_->position(); }
  void seek(const std::string& position) override { below_->seek(position); }
  // Streams that never wait may continue after it; this one ends.
  void stop() override {
    stopped_ = true;
    below_->stop();
  }
  std::map<std::string, std::int64_t> skipped() const override { return below_->skipped(); }

 private:
  std::unique_ptr<Stream> below_;
  std::atomic<bool> stopped_ = false;
};

std::string asking_for_files(const std::string& uri) {
  const std::string scheme = Uri(uri).scheme();
  constexpr std::array kWithFiles = {"folder", "shards", "urls"};
  if (std::ranges::find(kWithFiles, scheme) == kWithFiles.end()) return uri;
  return cat(uri, uri.find('?') == std::string::npos ? '?' : '&', "original=1");
}

// A name that is the same on every file system: letters, digits, dots (not first), '-' and '_'.
std::string safe_name(std::string_view text) {
  std::string name;
  for (const char c : text.substr(0, kMostName)) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' ||
                       (c == '.' && !name.empty());
    name += plain && static_cast<unsigned char>(c) < 128 ? c : '_';
  }
  return name;
}

std::string ending_of(std::span<const std::byte> content) {
  struct Kind {
    std::size_t at;
    std::string_view bytes;
    std::string_view ending;
  };
  static constexpr std::array kKinds = {
      Kind{0, "\xff\xd8\xff", ".jpg"}, Kind{0, "\x89PNG", ".png"},  Kind{8, "WEBP", ".webp"},
      Kind{0, "GIF8", ".gif"},         Kind{0, "BM", ".bmp"},       Kind{0, "II*", ".tif"},
      Kind{0, "MM", ".tif"},           Kind{4, "ftypavi", ".avif"}, Kind{4, "ftyp", ".heic"}};
  const std::string_view text(reinterpret_cast<const char*>(content.data()), content.size());
  for (const Kind& kind : kKinds) {
    if (text.substr(std::min(kind.at, text.size())).starts_with(kind.bytes)) {
      return std::string(kind.ending);
    }
  }
  return ".picture";
}

}  // namespace

std::unique_ptr<Stream> open_with_originals(const std::string& uri, const std::string& shapes) {
  return std::make_unique<WithOriginals>(open_stream(asking_for_files(uri), shapes));
}

std::string original_path(const Sample& sample, std::span<const std::byte> content) {
  const std::size_t from = sample.key.find_last_of("/:");
  std::string stem = sample.key.substr(from == std::string::npos ? 0 : from + 1);
  stem = safe_name(stem.substr(0, stem.rfind('.')));
  std::ostringstream name;
  name << std::setw(12) << std::setfill('0') << sample.index;
  if (!stem.empty()) name << '-' << stem;
  name << ending_of(content);
  const std::string folder = safe_name(sample.label);
  return folder.empty() ? name.str() : cat(folder, '/', name.str());
}

}  // namespace riffle
