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

#include "riffle/base/name_hash.h"
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
  // `has_files`: the source gives them, also with pictures that it does not decode.
  WithOriginals(std::unique_ptr<Stream> below, bool has_files, Encoding encoding)
      : below_(std::move(below)), has_files_(has_files), encoding_(encoding) {}

  std::optional<Sample> next() override {
    if (stopped_) return std::nullopt;
    auto sample = below_->next();
    if (sample && !sample->picture.file && !sample->picture.rgb.empty()) {
      sample->picture.file = std::make_shared<const std::vector<std::byte>>(
          encoding_ == Encoding::png ? encode_png(sample->picture)
                                     : encode_jpeg(sample->picture, kQuality));
    }
    return sample;
  }
  std::string position() const override { return below_->position(); }
  void seek(const std::string& position) override { below_->seek(position); }
  bool divide(const StreamShare& share) override {
    return (share.is_whole() || has_files_) && below_->divide(share);
  }
  // Streams that never wait may continue after it; this one ends.
  void stop() override {
    stopped_ = true;
    below_->stop();
  }
  std::map<std::string, std::int64_t> skipped() const override { return below_->skipped(); }

 private:
  std::unique_ptr<Stream> below_;
  const bool has_files_;
  const Encoding encoding_;
  std::atomic<bool> stopped_ = false;
};

bool has_files(const std::string& uri) {
  constexpr std::array kWithFiles = {"folder", "shards", "urls"};
  Uri address(uri);
  return std::ranges::find(kWithFiles, address.scheme()) != kWithFiles.end() &&
         address.get_bool("original", true);
}

std::string asking_for_files(const std::string& uri) {
  if (!has_files(uri) || Uri(uri).has("original")) return uri;
  return cat(uri, uri.find('?') == std::string::npos ? '?' : '&', "original=1");
}

// The files of a stream that is mixed in are asked for, too.
std::string shapes_asking_for_files(const std::string& shapes) {
  constexpr std::string_view kMix = "mix:";
  std::vector<std::string> texts;
  for (const Uri& shape : parse_shapes(shapes)) {
    texts.push_back(shape.text());
    const std::string& address = shape.path();
    if (address.empty() || !shape.text().starts_with(cat(kMix, address))) continue;
    texts.back().replace(kMix.size(), address.size(), asking_for_files(address));
  }
  return join(texts, ",");
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

// Returns whether a label can be a folder by its own name on any file system.
bool is_folder_name(std::string_view label) {
  if (label.empty() || label.size() > kMostName || printable(label) != label) return false;
  if (label.front() == '.' || label.front() == ' ') return false;
  if (label.back() == '.' || label.back() == ' ') return false;
  return label.find_first_of("/\\:*?\"<>|\t") == std::string_view::npos;
}

// Other labels' folders end in a number of their own: two labels are two folders.
std::string folder_of(const std::string& label) {
  if (label.empty() || is_folder_name(label)) return label;
  const std::string name = safe_name(label);
  constexpr std::size_t kDigits = 8;
  std::ostringstream number;
  number << std::hex << std::setw(kDigits) << std::setfill('0') << name_hash(label);
  return cat(name.substr(0, kMostName - kDigits - 1), '-', number.str().substr(0, kDigits));
}

struct Kind {
  std::size_t at;
  std::string_view bytes;
  std::string_view ending;
};

constexpr std::array kKinds = {
    Kind{0, "\xff\xd8\xff", ".jpg"}, Kind{0, "\x89PNG", ".png"},  Kind{8, "WEBP", ".webp"},
    Kind{0, "GIF8", ".gif"},         Kind{0, "BM", ".bmp"},       Kind{0, "II*", ".tif"},
    Kind{0, "MM", ".tif"},           Kind{4, "ftypavi", ".avif"}, Kind{4, "ftyp", ".heic"}};
constexpr std::string_view kUnknownEnding = ".picture";

std::string ending_of(std::span<const std::byte> content) {
  const std::string_view text(reinterpret_cast<const char*>(content.data()), content.size());
  for (const Kind& kind : kKinds) {
    if (text.substr(std::min(kind.at, text.size())).starts_with(kind.bytes)) {
      return std::string(kind.ending);
    }
  }
  return std::string(kUnknownEnding);
}

// What every name begins with.
std::string index_text(std::uint64_t index) {
  std::ostringstream text;
  text << std::setw(12) << std::setfill('0') << index;
  return text.str();
}

}  // namespace

std::unique_ptr<Stream> open_with_originals(const std::string& uri, const std::string& shapes,
                                            Encoding encoding) {
  return std::make_unique<WithOriginals>(
      open_stream(asking_for_files(uri), shapes_asking_for_files(shapes)), has_files(uri),
      encoding);
}

std::string original_path(const Sample& sample, std::span<const std::byte> content) {
  const std::size_t from = sample.key.find_last_of("/:");
  std::string stem = sample.key.substr(from == std::string::npos ? 0 : from + 1);
  stem = safe_name(stem.substr(0, stem.rfind('.')));
  const std::string name =
      cat(index_text(sample.index), stem.empty() ? "" : "-", stem, ending_of(content));
  const std::string folder = folder_of(sample.label);
  return folder.empty() ? name : cat(folder, '/', name);
}

bool is_original_path(const std::string& path, std::uint64_t index) {
  const std::size_t slash = path.find('/');
  const bool labelled = slash != std::string::npos;
  const std::string folder = labelled ? path.substr(0, slash) : "";
  if (labelled && !is_folder_name(folder)) return false;
  const std::string name = labelled ? path.substr(slash + 1) : path;
  const std::string begin = index_text(index);
  const std::size_t dot = name.rfind('.');
  if (!name.starts_with(begin) || dot == std::string::npos || dot < begin.size()) return false;
  const std::string ending = name.substr(dot);
  const bool known =
      ending == kUnknownEnding || std::ranges::find(kKinds, ending, &Kind::ending) != kKinds.end();
  const std::string stem = name.substr(begin.size(), dot - begin.size());
  if (!known || stem.empty()) return known;
  return stem.size() > 1 && stem[0] == '-' && safe_name(stem.substr(1)) == stem.substr(1);
}

}  // namespace riffle
