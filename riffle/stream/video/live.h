// A live address: a camera, a broadcast, a film over HTTP.
//
// A connection that cannot be made, breaks or falls silent is made again, after a pause that
// doubles from a tenth of a second to ten seconds and starts over with the first frame; the log
// says so. Every connection is a clip of its own. Ends if the address turns out to be a film of
// known length that was read to its end; otherwise never.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>

#include "riffle/stream/retry_log.h"
#include "riffle/stream/video/decoder.h"
#include "riffle/stream/video/sampling.h"
#include "riffle/stream/video/source.h"

namespace riffle {

// Returns whether this is an address for VideoLive and not a pattern of files.
bool is_live_address(const std::string& text);

struct VideoLiveOptions {
  std::string address;
  VideoSampling sampling;
  VideoDecoderOptions decoding;  // `leave` is the source's own
};

class VideoLive : public VideoSource {
 public:
  // Throws Error for a camera if FFmpeg's devices are left out of the build.
  explicit VideoLive(const VideoLiveOptions& options);

  std::optional<VideoEvent> produce() override;
  void go_to(const std::string& place, std::uint64_t given) override;
  void interrupt() override;
  std::string kind() const override { return "live"; }
  std::string describe() const override { return "video:" + shown_; }
  double unreachable_s() const override { return retries_.lasted(); }
  bool endless() const override;

 private:
  bool connect(VideoEvent& event);
  void disconnect();
  std::optional<VideoEvent> sample();
  bool pause();

  VideoInput input_;
  const std::string shown_;  // the address without a password
  RetryLog retries_;
  VideoDecoderOptions decoding_;
  const VideoSampling sampling_;
  std::unique_ptr<VideoDecoder> decoder_;
  FrameSampler sampler_;
  std::int64_t number_ = -1;  // of the frame, counted from the connection on
  std::uint64_t given_ = 0;
  std::uint64_t connected_at_ = 0;  // samples given before this connection
  bool over_ = false;

  std::chrono::milliseconds pause_{0};  // before the next connection
  std::mutex mutex_;
  std::condition_variable woken_;
  std::atomic<bool> leave_ = false;
};

}  // namespace riffle
