// One film or live address, opened with FFmpeg's libraries and decoded frame by frame.
//
// Frames come in the order they are shown, as upright RGB. Damage that the decoder notices never
// comes out as half a picture: frames are dropped from there to the next key frame. Memory is
// bounded whatever a file claims: frames of more than kMaxVideoPixels are refused. Decodes in the
// caller's thread. Not thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "riffle/image/codec.h"
#include "riffle/image/picture.h"
#include "riffle/stream/video/messages.h"
#include "riffle/stream/video/picture.h"

struct AVCodecContext;
struct AVFormatContext;
struct AVFrame;
struct AVPacket;
struct AVStream;

namespace riffle {

constexpr std::int64_t kMaxVideoPixels = 8192 * 4352;  // a film in "8K" and a little more

struct VideoInput {
  std::string address;    // for FFmpeg: "file:/films/a.mp4", "rtsp://..."
  std::string protocols;  // that it may use, comma-separated: a play list must not reach elsewhere
  std::string format;     // by name; empty: detected
  std::string formats = {};  // that may be detected, comma-separated; empty: any
  bool live = false;         // not a file: comes as it happens
};

struct VideoDecoderOptions {
  int short_side = 0;  // frames with a longer one are scaled down to it; 0: never
  // A read that takes longer than this gives up, if positive; so does any while *leave is true.
  double timeout = 0;
  const std::atomic<bool>* leave = nullptr;
};

class VideoDecoder {
 public:
  // Returns nothing, and `failure` says why, if it cannot be opened or is not a film.
  static std::unique_ptr<VideoDecoder> open(const VideoInput& input,
                                            const VideoDecoderOptions& options,
                                            DecodeFailure& failure);
  ~VideoDecoder();
  VideoDecoder(const VideoDecoder&) = delete;
  VideoDecoder& operator=(const VideoDecoder&) = delete;

  // What read() met. frame: the next frame is there. damage: frames were lost, reading continues.
  // end: it is over.
  enum class Event { frame, damage, end };
  Event read();
  // Returns the reason of the last damage or end; empty at a proper end.
  const DecodeFailure& failure() const { return failure_; }

  // Return the frame last read and its time stamp; no picture if its kind of pixels cannot be
  // converted.
  std::optional<Picture> picture();
  std::optional<std::int64_t> time_stamp() const;
  // Returns the time since the beginning of the film; without a time stamp, by the frame's number
  // and the film's rate.
  double seconds(std::int64_t number) const;

  // Goes to a place from which the frame with this time stamp can be decoded, if all is well; the
  // next frame may be before it or after. Returns false if that is not possible.
  bool seek(std::int64_t time_stamp);
  std::int64_t second() const;  // in units of the time stamps

  // Returns whether the length of the input is known, as of a file or a film over HTTP, so that its
  // end is the film's.
  bool knows_length() const;

 private:
  VideoDecoder(const VideoInput& input, const VideoDecoderOptions& options);
  bool open_input();
  bool find_stream();
  bool open_codec();
  int feed();
  int drain(DecodeFailure why_drained, bool input_ended);
  bool is_lead_in(const AVFrame& frame);
  bool is_next(const AVFrame& frame);
  void begin_anew();
  DecodeFailure why(std::string reason, int error);
  DecodeFailure why_input_ended(int error);
  int orientation() const;
  void begin_wait();
  static int gives_up(void* self);

  const VideoInput input_;
  const VideoDecoderOptions options_;
  VideoMessages messages_;  // before the contexts that point to it
  AVFormatContext* format_ = nullptr;
  AVCodecContext* codec_ = nullptr;
  AVStream* stream_ = nullptr;  // belongs to format_
  AVPacket* packet_ = nullptr;
  AVFrame* frame_ = nullptr;
  VideoPicture convert_;

  std::chrono::steady_clock::time_point give_up_at_{};
  DecodeFailure failure_;
  DecodeFailure pending_;       // why the decoder is being drained
  bool input_ended_ = false;    // nothing goes in any more
  bool ended_ = false;          // nor comes out
  int packets_for_key_ = 0;     // most to drop, waiting for a key frame; 0: none
  int frames_to_begin_ = 0;     // most to drop as lead-in; 0: the first is out
  std::int64_t begins_at_ = 0;  // time stamp of the key frame that reading began at
  int frames_for_key_ = 0;      // most frames to drop after damage, waiting for a key frame
  int packets_unanswered_ = 0;  // since the last frame
  int width_ = 0, height_ = 0;  // of the first frame
};

}  // namespace riffle
