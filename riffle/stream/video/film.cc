#include "riffle/stream/video/film.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

namespace riffle {
namespace {

// Containers, which hold a film, and a few that hold sound alone, to say so. FFmpeg also knows
// scripts (play lists, concat files) that name other files, which it would open, and wait for.
constexpr const char* kFilmFormats =
    "mov,mp4,matroska,webm,avi,mpegts,mpeg,mpegvideo,flv,ogg,asf,h264,hevc,av1,obu,vc1,m4v,mjpeg,"
    "ivf,nut,mxf,rm,dv,wtv,gif,apng,yuv4mpegpipe,wav,mp3,aac,flac";

VideoInput file_input(const std::string& path) {
  // With the prefix, no name is taken for an address.
  return {.address = "file:" + path,
          .protocols = "file",
          .format = "",
          .formats = kFilmFormats,
          .live = false};
}

}  // namespace

std::uint64_t pixel_sum(const Picture& picture) {
  constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15u;
  std::uint64_t sum = static_cast<std::uint64_t>(picture.width);
  const std::uint8_t* at = picture.rgb.data();
  std::size_t left = picture.rgb.size();
  while (left > 0) {
    std::uint64_t word = 0;
    const std::size_t size = std::min(left, sizeof word);
    std::memcpy(&word, at, size);
    sum = (sum ^ word) * kOdd;
    sum ^= sum >> 29;  // so that high bits reach the low ones
    at += size;
    left -= size;
  }
  return sum;
}

VideoFilm::VideoFilm(std::string path, const VideoDecoderOptions& options,
                     std::unique_ptr<VideoDecoder> decoder)
    : path_(std::move(path)), options_(options), decoder_(std::move(decoder)) {}

std::unique_ptr<VideoFilm> VideoFilm::open(const std::string& path,
                                           const VideoDecoderOptions& options,
                                           DecodeFailure& failure) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (error || !std::ifstream(path)) {
    failure = {kUnreadableFilm, error ? error.message() : "it may not be opened"};
    return nullptr;
  }
  if (size == 0) {
    failure = {"empty", "no bytes"};
    return nullptr;
  }
  auto decoder = VideoDecoder::open(file_input(path), options, failure);
  if (decoder == nullptr) return nullptr;
  return std::unique_ptr<VideoFilm>(new VideoFilm(path, options, std::move(decoder)));
}

VideoFilm::Event VideoFilm::read() {
  const Event event = decoder_->read();
  if (event != Event::frame) return event;
  ++number_;
  const auto time_stamp = decoder_->time_stamp();
  if (!time_stamp || (time_stamp_ && *time_stamp <= *time_stamp_)) ordered_ = false;
  time_stamp_ = time_stamp;
  return event;
}

FrameMark VideoFilm::mark(std::uint64_t sum) const {
  return {number_, ordered_ ? time_stamp_ : std::nullopt, sum};
}

bool VideoFilm::continue_after(const FrameMark& mark) {
  if (mark.time_stamp) {
    // Some formats land after the frame, or at a key frame from which it cannot be decoded: then
    // further back.
    constexpr std::int64_t kFartherEachTime = 4, kMaxSeconds = 300;
    for (std::int64_t back = 0; back <= kMaxSeconds; back = back * kFartherEachTime + 1) {
      std::int64_t place = 0;
      if (__builtin_sub_overflow(*mark.time_stamp, back * decoder_->second(), &place)) break;
      if (!decoder_->seek(place)) break;
      if (!find(mark)) continue;
      number_ = mark.number;
      time_stamp_ = mark.time_stamp;
      ordered_ = true;
      return true;
    }
  }
  DecodeFailure failure;
  auto again = VideoDecoder::open(file_input(path_), options_, failure);
  if (again == nullptr) return false;
  decoder_ = std::move(again);
  number_ = -1;
  time_stamp_.reset();
  ordered_ = true;
  while (number_ < mark.number) {
    if (read() == Event::end) return false;
  }
  return true;
}

// Reads up to the frame.
bool VideoFilm::find(const FrameMark& mark) {
  while (true) {
    const Event event = decoder_->read();
    if (event == Event::end) return false;
    if (event == Event::damage) continue;
    const auto time_stamp = decoder_->time_stamp();
    if (!time_stamp || *time_stamp > *mark.time_stamp) return false;
    if (*time_stamp < *mark.time_stamp) continue;
    const auto found = decoder_->picture();
    return found && pixel_sum(*found) == mark.sum;
  }
}

}  // namespace riffle
