// Films in files, one after the other; several are decoded at once, ahead of the reader.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "riffle/stream/skip_log.h"
#include "riffle/stream/source_part.h"
#include "riffle/stream/video/decoder.h"
#include "riffle/stream/video/film.h"
#include "riffle/stream/video/listing.h"
#include "riffle/stream/video/sampling.h"
#include "riffle/stream/video/source.h"

namespace riffle {

struct VideoFilmsOptions {
  std::string pattern;
  bool shuffled = false;
  SourcePart part;
  std::uint64_t seed = 0;
  bool labels = true;
  int threads = 0;  // each decodes a film of its own; 0: produce() decodes
  VideoSampling sampling;
  VideoDecoderOptions decoding;
};

// A place is the path of a film (in percent code) and a frame in it: whatever was added or removed
// in between (unless `part` counts the films), reading continues after that frame, or with the
// films that come after.
class VideoFilms : public VideoSource {
 public:
  // Adds folders that cannot be read to `skips`. Throws Error if there is no film.
  VideoFilms(const VideoFilmsOptions& options, SkipLog& skips);
  ~VideoFilms() override;

  std::optional<VideoEvent> produce() override;
  void go_to(const std::string& place, std::uint64_t given) override;
  void interrupt() override { leave_ = true; }
  std::string kind() const override { return options_.shuffled ? "shuffle" : "name"; }
  std::string describe() const override;

 private:
  class Reading;

  void require_some_film() const;

  std::atomic<bool> leave_ = false;
  const VideoFilmsOptions options_;
  const std::vector<ListedVideo> films_;
  std::size_t next_ = 0;                          // to be begun
  std::optional<FrameMark> after_;                // the frame to continue after in it
  std::deque<std::unique_ptr<Reading>> reading_;  // begun, in order
};

}  // namespace riffle
