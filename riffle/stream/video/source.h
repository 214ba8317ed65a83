// Where the samples of `video:` come from: a list of films or a live address.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "riffle/image/codec.h"
#include "riffle/stream/stream.h"

namespace riffle {

// What a source met: a sample, or an item it could not use.
struct VideoEvent {
  std::optional<Sample> sample;  // but for its index
  std::string place;             // after the sample, for go_to()
  std::string item;              // what `failure` is about
  DecodeFailure failure;
  // The source has said so in the log.
  bool logged = false;
};

// Returns the memory an event takes while it waits for the reader, in bytes.
inline std::uint64_t event_weight(const VideoEvent& event) {
  constexpr std::uint64_t kLeast = std::uint64_t{64} << 10;
  return kLeast + (event.sample ? event.sample->picture.rgb.size() : 0);
}

// Not thread-safe, except for interrupt() and unreachable_s().
class VideoSource {
 public:
  virtual ~VideoSource() = default;

  // Returns what comes next, or nothing at the end, until go_to() is called.
  virtual std::optional<VideoEvent> produce() = 0;

  // Makes produce() continue after the place of an event, "" being the beginning. `given` counts
  // the samples before it. Throws Error, and changes nothing, if the text is not a place.
  virtual void go_to(const std::string& place, std::uint64_t given) = 0;

  // Makes produce() leave what it reads or waits for, and return nothing until go_to() is called.
  virtual void interrupt() = 0;

  // Returns the first word of a position, so that one of another order is refused.
  virtual std::string kind() const = 0;
  // Returns "video:/films/*.mp4 (12 films)".
  virtual std::string describe() const = 0;
  // As Stream has them.
  virtual double unreachable_s() const { return 0; }
  virtual bool endless() const { return false; }
};

}  // namespace riffle
