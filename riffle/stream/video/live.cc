#include "riffle/stream/video/live.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#ifdef RIFFLE_AVDEVICE
extern "C" {
#include <libavdevice/avdevice.h>
}
#endif

#include "riffle/base/clock.h"
#include "riffle/base/error.h"
#include "riffle/base/name_hash.h"
#include "riffle/base/text.h"

namespace riffle {
namespace {

constexpr std::chrono::milliseconds kFirstPause{100}, kLongestPause{10'000};
constexpr std::string_view kCamera = "/dev/video";
constexpr std::array<std::string_view, 9> kSchemes = {"http://", "https://", "rtmp://",
                                                      "rtp://",  "rtsp://",  "rtsps://",
                                                      "srt://",  "tcp://",   "udp://"};
// What a play list or a session at such an address may lead to: other addresses, never files.
constexpr char kNetwork[] = "http,https,httpproxy,tcp,tls,udp,rtp,rtmp,rtsp,rtsps,srt,crypto,data";

VideoInput live_input(const std::string& address) {
  if (!address.starts_with(kCamera)) {
    return {.address = address, .protocols = kNetwork, .format = "", .live = true};
  }
#ifdef RIFFLE_AVDEVICE
  avdevice_register_all();
  return {.address = address, .protocols = "file", .format = "v4l2", .live = true};
#else
  throw Error(cat("video:", address,
                  ": this riffle was built without cameras; install libavdevice-dev and build "
                  "again"));
#endif
}

std::string without_password(const std::string& address) {
  const auto begin = address.find("://");
  if (begin == std::string::npos) return address;
  const auto end = address.find('/', begin + 3);
  const auto at = address.substr(0, end).rfind('@');
  if (at == std::string::npos || at < begin) return address;
  return address.substr(0, begin + 3) + address.substr(at + 1);
}

}  // namespace

bool is_live_address(const std::string& text) {
  return text.starts_with(kCamera) ||
         std::any_of(kSchemes.begin(), kSchemes.end(),
                     [&](std::string_view scheme) { return text.starts_with(scheme); });
}

VideoLive::VideoLive(const VideoLiveOptions& options)
    : input_(live_input(options.address)),
      shown_(without_password(options.address)),
      retries_("video:" + shown_),
      decoding_(options.decoding),
      sampling_(options.sampling),
      sampler_(options.sampling) {
  decoding_.leave = &leave_;
}

std::optional<VideoEvent> VideoLive::produce() {
  while (!over_ && !leave_) {
    VideoEvent event;
    event.item = shown_;
    if (!decoder_ && !connect(event)) {
      if (leave_) break;
      retries_.failed(event.failure.detail.empty() ? event.failure.reason : event.failure.detail);
      event.logged = true;
      return event;
    }
    switch (decoder_->read()) {
      case VideoDecoder::Event::frame:
        pause_ = {};
        retries_.worked();
        ++number_;
        if (sampler_.takes(number_, decoder_->seconds(number_))) return sample();
        break;
      case VideoDecoder::Event::damage:
        event.failure = decoder_->failure();
        return event;
      case VideoDecoder::Event::end:
        event.failure = decoder_->failure();
        over_ = event.failure.reason.empty();
        disconnect();
        if (!over_ && !leave_) return event;
    }
  }
  return std::nullopt;
}

// Returns false, with the reason in the event, if there is no connection.
bool VideoLive::connect(VideoEvent& event) {
  if (!pause()) return false;
  decoder_ = VideoDecoder::open(input_, decoding_, event.failure);
  if (!decoder_) {
    disconnect();
    return false;
  }
  sampler_ = FrameSampler(sampling_);
  number_ = -1;
  connected_at_ = given_;
  return true;
}

void VideoLive::disconnect() {
  decoder_.reset();
  pause_ = std::clamp(pause_ * 2, kFirstPause, kLongestPause);
}

// Returns false if it was interrupted.
bool VideoLive::pause() {
  std::unique_lock lock(mutex_);
  return !woken_.wait_for(lock, pause_, [&] { return leave_.load(); });
}

std::optional<VideoEvent> VideoLive::sample() {
  VideoEvent event;
  event.item = shown_;
  auto picture = decoder_->picture();
  if (!picture) {
    event.failure = {"unsupported", "pixels of a kind that cannot be converted"};
    disconnect();
    return event;
  }
  Sample sample;
  sample.picture = std::move(*picture);
  sample.clip =
      stable_number(cat(shown_, '#', connected_at_, '#', sampler_.cut(decoder_->seconds(number_))));
  sample.key = cat(shown_, '#', given_++);
  sample.time = static_cast<std::int64_t>(1000 * seconds_since_1970());
  event.sample = std::move(sample);
  return event;
}

void VideoLive::go_to(const std::string& place, std::uint64_t given) {
  if (!place.empty()) throw Error(cat("'", place, "' is not a place in a live video"));
  given_ = given;
  // What is being received continues, as a clip of its own.
  connected_at_ = given;
  over_ = false;
  leave_ = false;
}

// A film of known length may be at the addresses of these; the others are live.
bool VideoLive::endless() const {
  return std::ranges::none_of(std::array{"http://", "https://", "tcp://"}, [&](const char* scheme) {
    return input_.address.starts_with(scheme);
  });
}

void VideoLive::interrupt() {
  {
    const std::lock_guard lock(mutex_);
    leave_ = true;
  }
  woken_.notify_all();
}

}  // namespace riffle
