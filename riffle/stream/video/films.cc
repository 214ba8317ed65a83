#include "riffle/stream/video/films.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <utility>

#include "riffle/base/error.h"
#include "riffle/base/name_hash.h"
#include "riffle/base/text.h"
#include "riffle/stream/decoding.h"
#include "riffle/stream/pull_ahead.h"
#include "riffle/stream/uri.h"

namespace riffle {
namespace {

constexpr char kNoTimeStamp[] = "-";
// Each film that is open takes memory for its decoder.
constexpr int kMaxAtOnce = 16;

struct FramePlace {
  std::string path;
  FrameMark frame;
};

std::string text_of(const FramePlace& place) {
  const auto& frame = place.frame;
  return cat(encode_percent(place.path), ' ', frame.number, ' ',
             frame.time_stamp ? std::to_string(*frame.time_stamp) : kNoTimeStamp, ' ', frame.sum);
}

FramePlace place_from(const std::string& text) {
  const auto parts = split(text, ' ');
  if (parts.size() != 4) throw Error(cat("'", text, "' is not a place in a film"));
  FramePlace place;
  place.path = decode_percent(parts[0]);
  place.frame.number = parse_integer(parts[1], "the frame in a video position");
  if (parts[2] != kNoTimeStamp) {
    place.frame.time_stamp = parse_integer(parts[2], "the time stamp in a video position");
  }
  const auto* end = parts[3].data() + parts[3].size();
  const auto [rest, error] = std::from_chars(parts[3].data(), end, place.frame.sum);
  if (error != std::errc() || rest != end || place.frame.number < 0) {
    throw Error(cat("'", text, "' is not a place in a film"));
  }
  return place;
}

// A local file that gives nothing for this long is left.
constexpr double kFilmTimeout = 30;

VideoFilmsOptions with_ways_out(VideoFilmsOptions options, const std::atomic<bool>& leave) {
  options.decoding.timeout = kFilmTimeout;
  options.decoding.leave = &leave;
  return options;
}

// What one film gives.
class Film {
 public:
  Film(const VideoFilmsOptions& options, std::string path, std::optional<FrameMark> after)
      : options_(options), path_(std::move(path)), after_(after), sampler_(options.sampling) {}

  // Returns nothing at the end, and ever after.
  std::optional<VideoEvent> produce() {
    if (ended_) return std::nullopt;
    VideoEvent event;
    event.item = path_;
    if (!film_ && !open(event)) return event;
    while (true) {
      switch (film_->read()) {
        case VideoFilm::Event::frame:
          if (sampler_.takes(film_->number(), film_->seconds())) return sample();
          break;
        case VideoFilm::Event::damage:
          event.failure = film_->failure();
          return event;
        case VideoFilm::Event::end:
          event.failure = film_->failure();
          end();
          if (*options_.decoding.leave) return std::nullopt;
          if (event.failure.reason.empty()) return std::nullopt;
          return event;
      }
    }
  }

 private:
  // Returns false, and the event says why, if the film has nothing to give.
  bool open(VideoEvent& event) {
    film_ = VideoFilm::open(path_, options_.decoding, event.failure);
    if (film_ && after_) {
      if (film_->continue_after(*after_)) {
        sampler_.continue_after(film_->seconds());
      } else {
        event.failure = {"shorter than before", cat("no frame ", after_->number, " any more")};
        film_.reset();
      }
    }
    if (!film_) end();
    return film_ != nullptr;
  }

  VideoEvent sample() {
    VideoEvent event;
    event.item = cat(path_, '#', film_->number());
    auto picture = film_->picture();
    if (!picture) {
      event.failure = {"unsupported", "pixels of a kind that cannot be converted"};
      end();
      return event;
    }
    event.place = text_of({path_, film_->mark(pixel_sum(*picture))});
    Sample sample;
    sample.picture = std::move(*picture);
    sample.clip = stable_number(cat(path_, '#', sampler_.cut(film_->seconds())));
    sample.key = event.item;
    sample.seconds = film_->seconds();
    if (options_.labels) {
      sample.label = std::filesystem::path(path_).parent_path().filename().string();
    }
    event.sample = std::move(sample);
    return event;
  }

  void end() {
    film_.reset();
    ended_ = true;
  }

  const VideoFilmsOptions& options_;
  const std::string path_;
  const std::optional<FrameMark> after_;
  FrameSampler sampler_;
  std::unique_ptr<VideoFilm> film_;
  bool ended_ = false;
};

}  // namespace

// A film, read ahead by a thread of its own if there are threads.
class VideoFilms::Reading {
 public:
  Reading(const VideoFilmsOptions& options, const std::string& path, std::optional<FrameMark> after)
      : film_(options, path, after),
        ahead_(
            options.threads > 0 ? 1 : 0,
            kAheadBytes / static_cast<std::uint64_t>(std::max(1, options.threads)),
            [this] { return film_.produce(); }, [](VideoEvent&& event) { return std::move(event); },
            event_weight) {}

  std::optional<VideoEvent> take() { return ahead_.take(); }

 private:
  Film film_;
  PullAhead<VideoEvent, VideoEvent> ahead_;  // last: its thread uses the film
};

VideoFilms::VideoFilms(const VideoFilmsOptions& options, SkipLog& skips)
    : options_(with_ways_out(options, leave_)),
      films_(options.part.of(list_videos(options.pattern, options.shuffled, options.seed, skips),
                             "video:" + options.pattern)) {}

VideoFilms::~VideoFilms() { leave_ = true; }

std::optional<VideoEvent> VideoFilms::produce() {
  const auto at_once = static_cast<std::size_t>(std::clamp(options_.threads, 1, kMaxAtOnce));
  while (!leave_) {
    while (next_ < films_.size() && reading_.size() < at_once) {
      reading_.push_back(std::make_unique<Reading>(options_, films_[next_++].path,
                                                   std::exchange(after_, std::nullopt)));
    }
    if (reading_.empty()) return std::nullopt;
    if (auto event = reading_.front()->take()) {
      if (leave_) break;
      if (event->failure.reason == kUnreadableFilm) require_some_film();
      return event;
    }
    reading_.pop_front();
  }
  return std::nullopt;
}

// If all films are gone, everything left would be skipped, and a run would take it for the end.
void VideoFilms::require_some_film() const {
  const auto is_there = [](const ListedVideo& film) {
    std::error_code ignored;
    return std::filesystem::exists(film.path, ignored);
  };
  if (std::ranges::any_of(films_, is_there)) return;
  throw Error(cat(describe(), ": all films are gone"), ErrorKind::failure);
}

void VideoFilms::go_to(const std::string& text, std::uint64_t) {
  std::optional<FrameMark> after;
  std::size_t next = 0;
  if (!text.empty()) {
    const FramePlace place = place_from(text);
    const ListedVideo film{video_rank(place.path, options_.shuffled, options_.seed), place.path};
    const auto found = std::lower_bound(films_.begin(), films_.end(), film);
    next = static_cast<std::size_t>(found - films_.begin());
    if (found != films_.end() && *found == film) after = place.frame;
  }
  leave_ = true;  // so that what is being read ends soon
  reading_.clear();
  leave_ = false;
  next_ = next;
  after_ = after;
}

std::string VideoFilms::describe() const {
  const auto count = films_.size() == 1 ? "" : cat(" (", films_.size(), " films)");
  return cat("video:", options_.pattern, count);
}

}  // namespace riffle
