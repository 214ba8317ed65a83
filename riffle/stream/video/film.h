// One film in a file, frame by frame, from any place in it.
//
// A frame's number counts the undamaged frames before it. To go on behind a frame, the key frame
// before it is sought by the time stamp and decoded forward from there, and the frame found is
// compared with the one remembered; where a film's time stamps are missing or do not grow, or
// lead elsewhere, it is read from its beginning instead. Used by one thread.
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

// A sum that any changed pixel changes.
std::uint64_t pixel_sum(const Picture& picture);

class VideoFile {
 public:
  // Nothing, and `failure` says why, when it holds no film.
  static std::unique_ptr<VideoFile> open(const std::string& path,
                                         const VideoDecoderOptions& options,
                                         DecodeFailure& failure);

  using Event = VideoDecoder::Event;
  Event read();
  const DecodeFailure& failure() const { return decoder_->failure(); }

  // Of the frame last read, or gone behind.
  std::int64_t number() const { return number_; }
  double seconds() const { return decoder_->seconds(number_); }
  std::optional<Picture> picture() { return decoder_->picture(); }
  // `sum` is that of the picture.
  FrameMark mark(std::uint64_t sum) const;

  // False when the film has no such frame; then it is at its end.
  bool go_behind(const FrameMark& mark);

 private:
  VideoFile(std::string path, const VideoDecoderOptions& options,
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
