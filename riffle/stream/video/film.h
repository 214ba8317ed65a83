// One film in a file, frame by frame, from any place in it.
//
// A frame's number counts the undamaged frames before it. To continue after a frame, the key frame
// before it is found by the time stamp and decoded forward from there, and the frame found is
// compared with the one remembered; if a film's time stamps are missing or do not grow, or lead
// elsewhere, it is read from its beginning instead. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "riffle/image/codec.h"
#include "riffle/stream/video/decoder.h"

namespace riffle {

constexpr const char* kUnreadableFilm = "unreadable";

// A frame to be found again.
struct FrameMark {
  std::int64_t number = 0;
  std::optional<std::int64_t> time_stamp;  // if all so far grew from frame to frame
  std::uint64_t sum = 0;                   // of its pixels
};

// Returns a sum that any changed pixel changes.
std::uint64_t pixel_sum(const Picture& picture);

class VideoFilm {
 public:
  // Returns nothing, and `failure` says why, if it is not a film.
  static std::unique_ptr<VideoFilm> open(const std::string& path,
                                         const VideoDecoderOptions& options,
                                         DecodeFailure& failure);

  using Event = VideoDecoder::Event;
  Event read();
  const DecodeFailure& failure() const { return decoder_->failure(); }

  // Return the number, time and picture of the frame last read, or continued after.
  std::int64_t number() const { return number_; }
  double seconds() const { return decoder_->seconds(number_); }
  std::optional<Picture> picture() { return decoder_->picture(); }
  // Returns a mark of the frame; `sum` is that of its picture.
  FrameMark mark(std::uint64_t sum) const;

  // Continues after a frame. Returns false, at the end of the film, if it has no such frame.
  bool continue_after(const FrameMark& mark);

 private:
  VideoFilm(std::string path, const VideoDecoderOptions& options,
            std::unique_ptr<VideoDecoder> decoder);
  bool find(const FrameMark& mark);

  const std::string path_;
  const VideoDecoderOptions options_;
  std::unique_ptr<VideoDecoder> decoder_;
  std::int64_t number_ = -1;
  std::optional<std::int64_t> time_stamp_;  // the last
  bool ordered_ = true;                     // time stamps so far grew
};

}  // namespace riffle
