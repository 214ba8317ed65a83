// What a run without a buffer was trained on lately: the labels of the newest samples at some
// places along its stream, found by reading the stream a second time, once, in order.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "riffle/run/config.h"
#include "riffle/stream/stream.h"

namespace riffle {

class RecentLabels {
 public:
  // Of as many samples as a buffer of this configuration would hold (a capacity in bytes counts
  // pictures alone). Opens the stream; throws what that does.
  explicit RecentLabels(const Config& config);

  // When `samples_seen` samples had been taken; never fewer than the call before.
  const std::deque<std::string>& at(std::int64_t samples_seen);

 private:
  std::unique_ptr<Stream> stream_;
  std::int64_t window_;
  std::int64_t read_ = 0;
  std::deque<std::string> labels_;
};

}  // namespace riffle
