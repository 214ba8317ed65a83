// A stream of pictures that never has to end: each sample is seen once, in order.
//
// Sources (synthetic, folder, ...) and shapes that wrap another stream are all Streams. Not
// thread-safe, except for stop() and unreachable_s().
#pragma once

#include <cstdint>
#include <functional>
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
  // The number of samples the source gave before this one.
  std::uint64_t index = 0;
  // The same for consecutive samples of one shot; different for different shots.
  std::int64_t clip = kNoClip;
  // Empty if the source knows none. The learner never reads it; probes and studies do.
  std::string label;
  // Where it came from: a path, a URL, a member of a shard; each frame of a clip has its own.
  std::string key;
  // When it came, in milliseconds since 1970; 0: unknown. Set by live sources, and by who reads a
  // stream for a run.
  std::int64_t time = 0;
  // Of a frame of a film: when it is shown, since the film's beginning; below 0: not of a film.
  double seconds = -1;
};

// One reader's share of a stream that several readers divide by batches: of every `readers`
// batches, one after the other, the one with the number `reader`. By default the whole stream.
struct StreamShare {
  int reader = 0;
  int readers = 1;
  std::int64_t batch = 1;  // samples

  bool is_whole() const { return readers == 1; }
  // Returns whether a sample belongs to it, given the number of samples before that one.
  bool has(std::int64_t before) const { return before / batch % readers == reader; }
};

class Stream {
 public:
  virtual ~Stream() = default;

  // Returns the next sample, or nothing at the end of the stream. Skips, counts and logs what
  // cannot be decoded. Throws Error if the source is gone, or ends without a single usable item.
  virtual std::optional<Sample> next() = 0;

  // Returns a short text that says where the stream is. After seek(position()) on a stream opened
  // with the same URI, next() continues as if nothing had happened. seek throws Error if the text
  // is not a position of this stream.
  virtual std::string position() const = 0;
  virtual void seek(const std::string& position) = 0;

  // From here on, next() decodes only the pictures of this share, counted from here whatever seek()
  // does, and gives all other samples without a picture. Nothing is skipped then: what cannot be
  // used comes without a picture too, for the other readers cannot know of it, and all must count
  // alike. divided_reader.h makes of that what the whole stream gives. The whole stream as a share
  // ends it. Returns false, and changes nothing, if this stream cannot be divided.
  virtual bool divide(const StreamShare& share) { return share.is_whole(); }

  // From here on, whatever seek() does, next() gives the wanted samples alone, and does not decode
  // the others to find out. Requires that `wanted` judges by label and key: samples have no picture
  // yet. Returns false, and changes nothing, if this stream cannot tell before it decodes.
  virtual bool keep_only(const std::function<bool(const Sample&)>& /*wanted*/) { return false; }

  // Makes a next() that waits for data (a camera, a watched folder) or reads what may be long (a
  // film, an archive) return nothing soon, and every later one too. Has no effect on streams whose
  // next() is always quick. Thread-safe, also while next() runs.
  virtual void stop() {}

  // Returns for how many seconds the source cannot be reached and is tried again; 0 while it can.
  // Thread-safe, also while next() runs.
  virtual double unreachable_s() const { return 0; }

  // Returns how many items this object has skipped since it was opened, by reason. Counts never
  // fall: seek() keeps them, and what is met again counts again. A stream opened again begins with
  // what opening skipped, so whoever keeps a count across restarts adds what came since.
  virtual std::map<std::string, std::int64_t> skipped() const { return {}; }

  // Returns, for a stream whose subject changes and that knows when, the number of samples it has
  // given at the end of each subject's turn, the last being its end; otherwise nothing.
  virtual std::vector<std::int64_t> turns() const { return {}; }

  // Returns whether the stream is known never to end unless it is stopped or fails.
  virtual bool endless() const { return false; }
  // Returns after how many samples the stream began to repeat itself; nothing if it did not yet.
  virtual std::optional<std::int64_t> period() const { return std::nullopt; }
};

// Opens "synthetic:?frames=64", "folder:/data/photos?order=name", ... Throws Error for an unknown
// scheme or option, naming the nearest valid one, and for a source that cannot be opened.
std::unique_ptr<Stream> open_stream(const std::string& uri);

// Opens the same with shapes around it, the innermost first: "clips:length=64,limit:samples=10000"
// (see shapes/shape.h); "" for none.
std::unique_ptr<Stream> open_stream(const std::string& uri, const std::string& shapes);

}  // namespace riffle
