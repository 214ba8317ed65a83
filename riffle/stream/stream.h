// A stream of pictures that never has to end: each sample is seen once, in order.
//
// Sources (synthetic, folder, ...) and shapes that wrap another stream all are Streams. A stream is
// used by one thread; stop() alone may be called from any.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "riffle/image/picture.h"

namespace riffle {

constexpr std::int64_t kNoClip = -1;

struct Sample {
  Picture picture;
  // How many samples the source gave before this one.
  std::uint64_t index = 0;
  // Samples that follow one another in one shot share it; distinct shots differ.
  std::int64_t clip = kNoClip;
  // Empty when the source knows none. The learner never reads it; probes and studies do.
  std::string label;
  // Where it came from: a path, a URL, a member of a shard; each frame of a clip has its own.
  std::string key;
};

class Stream {
 public:
  virtual ~Stream() = default;

  // The following sample, or nothing at the end. What cannot be decoded is skipped, counted and
  // logged, never thrown; only a source that is gone, or ends without a usable item, throws Error.
  virtual std::optional<Sample> next() = 0;

  // A short text that says where the stream stands. After seek(position()) on a stream opened with
  // the same URI, next() goes on as if nothing had happened. seek throws Error for a text that is
  // no position of this stream.
  virtual std::string position() const = 0;
  virtual void seek(const std::string& position) = 0;

  // Ends the wait of a next() for data still to arrive (a camera, a folder that is watched), which
  // then gives nothing, as does every later one. Has no effect on streams that never wait. Safe to
  // call from any thread, once or often, while next() runs.
  virtual void stop() {}

  // How many items this object has skipped since it was opened, by reason. Counts never fall:
  // seek() leaves them, and what is met again counts again. One opened anew begins with what
  // opening met, so whoever keeps a count across restarts adds up what came since.
  virtual std::map<std::string, std::int64_t> skipped() const { return {}; }
};

// Opens "synthetic:?frames=64", "folder:/data/photos?order=name", ... Throws Error for an unknown
// scheme or option, naming the nearest valid one, and for a source that cannot be opened.
std::unique_ptr<Stream> open_stream(const std::string& uri);

// The same with shapes around it, the innermost first: "clips:length=64,limit:samples=10000" (see
// shapes/shape.h). Empty: none.
std::unique_ptr<Stream> open_stream(const std::string& uri, const std::string& shapes);

}  // namespace riffle
