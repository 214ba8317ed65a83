#include "riffle/study/recent_labels.h"

#include <algorithm>

#include "riffle/buffer/memory_plan.h"

namespace riffle {
namespace {

std::int64_t buffer_samples(const Config& config) {
  const Capacity capacity = parse_capacity(config.learner.buffer.capacity);
  if (capacity.samples > 0) return capacity.samples;
  const auto size = static_cast<std::uint64_t>(config.learner.stored_size());
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(capacity.bytes / (3 * size * size)));
}

}  // namespace

RecentLabels::RecentLabels(const Config& config)
    : stream_(open_stream(config.stream, config.shapes)), window_(buffer_samples(config)) {}

const std::deque<std::string>& RecentLabels::at(std::int64_t samples_seen) {
  for (; read_ < samples_seen; ++read_) {
    auto sample = stream_->next();
    if (!sample) break;
    labels_.push_back(std::move(sample->label));
    if (std::ssize(labels_) > window_) labels_.pop_front();
  }
  return labels_;
}

}  // namespace riffle
