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
  // Keeps as many labels as a buffer of this configuration would hold samples (a capacity in bytes
  // counts pictures alone). Opens the stream; throws what that throws.
  explicit RecentLabels(const Config& config);

  // Returns the labels when `samples_seen` samples had been taken. Requires that the number is not
  // smaller than in the call before.
  const std::deque<std::string>& at(std::int64_t samples_seen);

 private:
  std::unique_ptr<Stream> stream_;
  std::int64_t window_;
  std::int64_t read_ = 0;
  std::deque<std::string> labels_;
};

}  // namespace riffle
