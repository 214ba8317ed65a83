// Containers that sources open, and the texts that say what to open and where to continue.

#include <atomic>
#include <cstdio>
#include <cstring>
#include <set>

#include "fuzz/input_folder.h"
#include "fuzz/targets.h"

#include "riffle/base/text.h"
#include "riffle/stream/label_groups.h"
#include "riffle/stream/shapes/shape.h"
#include "riffle/stream/shards/label.h"
#include "riffle/stream/shards/reader.h"
#include "riffle/stream/stream.h"
#include "riffle/stream/uri.h"
#include "riffle/stream/urls/list.h"
#include "riffle/stream/video/film.h"
#include "riffle/stream/wordnet.h"

namespace riffle::fuzz {
namespace {

const InputFolder& stream_inputs() {
  static const InputFolder folder;
  return folder;
}

// Puts the sums of all headers of a tar right, so that damage there reaches what comes after.
std::vector<std::byte> with_sums(Bytes bytes) {
  constexpr std::size_t kBlock = 512, kSum = 148, kMagic = 257;
  std::vector<std::byte> tar(bytes.begin(), bytes.end());
  for (std::size_t at = 0; at + kBlock <= tar.size(); at += kBlock) {
    std::byte* header = tar.data() + at;
    if (std::memcmp(header + kMagic, "ustar", 5) != 0) continue;
    std::memset(header + kSum, ' ', 8);
    unsigned sum = 0;
    for (std::size_t i = 0; i < kBlock; ++i) sum += static_cast<unsigned>(header[i]);
    char digits[16];
    std::snprintf(digits, sizeof(digits), "%06o", sum);
    std::memcpy(header + kSum, digits, 7);
  }
  return tar;
}

void read_all_items(Bytes shard) {
  const std::vector<std::string> paths = {stream_inputs().put("shard.tar", shard).string()};
  const std::atomic<bool> leave = false;
  std::vector<ShardPlace> places;
  ShardReader reader(paths, {}, {}, leave);
  while (const auto item = reader.next()) places.push_back(item->after);
  if (places.empty()) return;
  ShardReader again(paths, {}, places[places.size() / 2], leave);
  while (again.next()) {
  }
}

// A line for each label.
std::string labels_of(const std::string& uri) {
  std::set<std::string> labels;
  const auto stream = open_stream(uri);
  while (const auto sample = stream->next()) labels.insert(sample->label);
  return join(std::vector(labels.begin(), labels.end()), "\n");
}

}  // namespace

void read_shard(Bytes bytes) {
  read_all_items(bytes);
  read_all_items(with_sums(bytes));
}

void read_film(Bytes bytes) {
  constexpr int kMostEvents = 60;
  const auto path = stream_inputs().put("film", bytes).string();
  const VideoDecoderOptions options{.short_side = 16, .timeout = 5};
  DecodeFailure failure;
  const auto film = VideoFilm::open(path, options, failure);
  if (!film) return;
  std::optional<FrameMark> mark;
  for (int i = 0; i < kMostEvents; ++i) {
    const auto event = film->read();
    if (event == VideoFilm::Event::end) break;
    if (event != VideoFilm::Event::frame) continue;
    film->seconds();
    if (const auto picture = film->picture(); picture && i % 8 == 3) {
      mark = film->mark(pixel_sum(*picture));
    }
  }
  if (!mark) return;
  const auto again = VideoFilm::open(path, options, failure);
  if (again) again->continue_after(*mark);
}

void read_uri(Bytes bytes) {
  const std::string text = text_of(bytes);
  decode_percent(encode_percent(text));
  Uri uri(text);
  uri.get("label", "dir");
  uri.get_integer("size", 0, 0, 1 << 16);
  uri.get_number("fps", 0, 0, 1e6);
  uri.get_bool("watch", false);
  uri.get_choice("order", {"name", "time"});
  uri.refuse_unknown();
}

void read_shapes(Bytes bytes) {
  for (Uri& shape : parse_shapes(text_of(bytes))) {
    shape.get_integer("length", 64, 1, 1 << 20);
    shape.get_number("share", 0.5, 0, 1);
  }
}

// The first byte picks the shapes, the rest is a position.
void read_position(Bytes bytes) {
  constexpr const char* kStream = "synthetic:?frames=4&size=8&samples=32";
  static const std::vector<std::string> shapes = {
      "",
      "clips:length=4,pick=random",
      "limit:samples=20",
      "subsample:every=3,pick=random",
      "loop:times=3",
      "shuffle:window=8",
      "decorrelate:window=16,memory=0",
      "mix:synthetic:?size=8&samples=9,share=0.4",
      "junk:share=0.4,run=5",
      "still:length=4,share=0.5",
      "reupload:share=0.4,window=7",
      "zipf:classes=4",
      "junk:share=0.3,clips:length=5,reupload:window=9,still:length=6",
      cat("lifelong:groups=2,list=", stream_inputs().put("classes", labels_of(kStream)).string()),
      "throttle:rate=1000000"};
  if (bytes.empty()) return;
  const auto which = static_cast<std::size_t>(bytes[0]) % shapes.size();
  const auto stream = open_stream(kStream, shapes[which]);
  stream->seek(text_of(bytes.subspan(1)));
  for (int i = 0; i < 8 && stream->next(); ++i) {
  }
  // What a stream says of itself, it takes back.
  stream->seek(stream->position());
}

void read_url_list(Bytes bytes) {
  const auto path = stream_inputs().put("urls.txt", bytes);
  UrlList list(path, {});
  std::vector<UrlPlace> places;
  while (const auto entry = list.next()) places.push_back(entry->after);
  if (places.empty()) return;
  UrlList again(path, places[places.size() / 2]);
  while (again.next()) {
  }
}

void read_wordnet(Bytes bytes) {
  wordnet_order({"n00001740", "n00002137"}, stream_inputs().put("data.noun", bytes));
}

void read_labels(Bytes bytes) {
  const std::string text = text_of(bytes);
  label_from_cls(text);
  label_from_json(text, "label");
  label_from_folder(text);
  LabelGroups(read_label_list(stream_inputs().put("labels.txt", bytes)), 2);
}

}  // namespace riffle::fuzz
