#include "riffle/stream/video/video.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <limits>
#include <utility>

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/stream/decoding.h"
#include "riffle/stream/pull_ahead.h"
#include "riffle/stream/skip_log.h"
#include "riffle/stream/video/films.h"
#include "riffle/stream/video/live.h"

namespace riffle {
namespace {

class VideoStream : public Stream {
 public:
  // `threads`: 1 to read ahead of next(), for a source that does not do so itself; or 0. `skips`:
  // what could not be used already.
  VideoStream(std::unique_ptr<VideoSource> source, int threads, SkipLog skips = SkipLog())
      : source_(std::move(source)), threads_(threads), skips_(std::move(skips)) {}
  ~VideoStream() override { leave(); }

  std::optional<Sample> next() override {
    if (!ahead_ && !ended_) start();
    while (!stopped_ && !ended_) {
      auto event = ahead_->take();
      if (stopped_) break;
      if (!event) {
        ended_ = true;
      } else if (event->logged) {
        skips_.count(event->failure.reason);
      } else if (!event->sample) {
        skips_.add(event->item, event->failure.reason, event->failure.detail);
      } else {
        place_ = std::move(event->place);
        event->sample->index = given_++;
        return std::move(event->sample);
      }
    }
    if (!stopped_ && given_ == 0) {
      throw Error(
          cat(source_->describe(), ": nothing in it can be decoded (", skips_.summary(), ")"));
    }
    return std::nullopt;
  }

  // "kind given [place]"
  std::string position() const override {
    return cat(source_->kind(), ' ', given_, place_.empty() ? "" : " ", place_);
  }

  void seek(const std::string& position) override {
    const auto parts = split(position, ' ');
    if (parts.size() < 2 || parts[0] != source_->kind()) {
      throw Error(cat("'", position, "' is not a position in ", source_->describe(), " by ",
                      source_->kind()));
    }
    const auto given = parse_integer(parts[1], "the count in a video position");
    if (given < 0) throw Error(cat("the count in the video position '", position, "' is negative"));
    const auto place = join(std::span(parts).subspan(2), " ");
    leave();
    try {
      source_->go_to(place, static_cast<std::uint64_t>(given));
    } catch (const Error&) {
      source_->go_to(place_, given_);  // what was read ahead is gone
      throw;
    }
    given_ = static_cast<std::uint64_t>(given);
    place_ = place;
    ended_ = false;
  }

  void stop() override {
    stopped_ = true;
    source_->interrupt();
  }

  double unreachable_s() const override { return source_->unreachable_s(); }
  std::map<std::string, std::int64_t> skipped() const override { return skips_.counts(); }
  bool endless() const override { return source_->endless(); }

 private:
  void start() {
    ahead_.emplace(
        threads_, kAheadBytes, [this] { return source_->produce(); },
        [](VideoEvent&& event) { return std::move(event); }, event_weight);
  }

  void leave() {
    source_->interrupt();
    ahead_.reset();
  }

  const std::unique_ptr<VideoSource> source_;
  const int threads_;
  SkipLog skips_;
  std::string place_;
  std::uint64_t given_ = 0;
  bool ended_ = false;
  std::atomic<bool> stopped_ = false;
  std::optional<PullAhead<VideoEvent, VideoEvent>> ahead_;  // last: its thread uses the source
};

VideoSampling read_sampling(Uri& uri) {
  constexpr double kMaxFps = 1000, kMaxClip = 1e6;
  VideoSampling sampling;
  sampling.stride = uri.get_integer("stride", 1, 1, std::numeric_limits<std::int32_t>::max());
  sampling.fps = uri.get_number("fps", 0, 0, kMaxFps);
  sampling.clip = uri.get_number("clip", 0, 0, kMaxClip);
  if (sampling.fps > 0 && sampling.stride > 1) {
    throw Error(cat("'", uri.text(), "': give either fps or stride, not both"));
  }
  return sampling;
}

std::unique_ptr<VideoSource> open_live(Uri& uri, const VideoSampling& sampling,
                                       VideoDecoderOptions decoding) {
  constexpr double kTimeout = 10, kMinTimeout = 0.1, kMaxTimeout = 3600;
  decoding.timeout = uri.get_number("timeout", kTimeout, kMinTimeout, kMaxTimeout);
  uri.refuse_unknown();
  auto live = std::make_unique<VideoLive>(VideoLiveOptions{uri.path(), sampling, decoding});
  // A camera that goes away is waited for, but one that was never there is a typing error.
  std::error_code unknown;
  if (uri.path().starts_with('/') && !std::filesystem::exists(uri.path(), unknown)) {
    throw Error(cat("video: no camera ", uri.path(), "; ls /dev/video* shows those here"));
  }
  return live;
}

std::unique_ptr<VideoSource> open_films(Uri& uri, const VideoSampling& sampling,
                                        const VideoDecoderOptions& decoding, int threads,
                                        SkipLog& skips) {
  VideoFilmsOptions options;
  options.pattern = uri.path();
  options.shuffled = uri.get_choice("order", {"name", "shuffle"}) == "shuffle";
  options.labels = uri.get_choice("label", {"dir", "none"}) == "dir";
  options.seed = static_cast<std::uint64_t>(
      uri.get_integer("seed", 0, 0, std::numeric_limits<std::int64_t>::max()));
  options.part = read_part(uri);
  options.sampling = sampling;
  options.decoding = decoding;
  options.threads = threads;
  uri.refuse_unknown();
  return std::make_unique<VideoFilms>(options, skips);
}

}  // namespace

std::unique_ptr<Stream> open_video(Uri& uri) {
  if (uri.path().empty()) {
    throw Error("video: needs films or an address, such as video:/films/*.mp4");
  }
  const Decoding asked = read_decoding(uri);
  const VideoSampling sampling = read_sampling(uri);
  VideoDecoderOptions decoding;
  decoding.short_side = asked.options.short_side;
  if (!is_live_address(uri.path())) {
    SkipLog skips;
    auto films = open_films(uri, sampling, decoding, asked.threads, skips);
    return std::make_unique<VideoStream>(std::move(films), 0, std::move(skips));
  }
  return std::make_unique<VideoStream>(open_live(uri, sampling, decoding),
                                       std::min(asked.threads, 1));
}

}  // namespace riffle
