// A stream as Python holds it: read sample by sample, or handed over to whoever reads it ahead.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "python/bindings/background.h"
#include "python/bindings/owned.h"

#include "riffle/stream/stream.h"

namespace riffle::python {

class StreamHandle {
 public:
  explicit StreamHandle(std::unique_ptr<Stream> stream);
  ~StreamHandle();

  // As those of Stream. Ctrl-C loses nothing: the sample that was awaited is the next one returned.
  std::optional<Sample> next();
  std::string position() const { return state_->position; }
  void seek(const std::string& position);
  std::map<std::string, std::int64_t> skipped();
  void stop() { state_->stream->stop(); }

  // Returns the stream where it is, for another reader; from then on this throws Error if used.
  std::shared_ptr<Stream> hand_over();

 private:
  struct State {
    std::shared_ptr<Stream> stream;
    std::string position;  // after the last sample that was returned
    bool handed_over = false;

    // A sample that was read but not yet returned, and the position after it.
    struct Read {
      std::optional<Sample> sample;
      std::string position;
    };
    Pending<Read> read;
  };
  void require_own() const;

  const std::shared_ptr<State> state_;
  Background reader_;
};

using OwnedStream = Owned<StreamHandle>;

}  // namespace riffle::python
