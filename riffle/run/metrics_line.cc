#include "riffle/run/metrics_line.h"

#include <algorithm>

#include "riffle/base/text.h"

namespace riffle {

MetricsLine metrics_line(const UpdateReport& report, const BufferStats& buffer,
                         const std::map<std::string, std::int64_t>& skipped) {
  MetricsLine line = {{"samples_seen", static_cast<double>(report.samples_seen)},
                      {"loss", report.loss},
                      {"std", report.std},
                      {"lr", report.lr},
                      {"same_clip_pairs", report.same_clip_pairs},
                      {"buffer_size", static_cast<double>(buffer.size)},
                      {"buffer_clips", static_cast<double>(buffer.distinct_clips)},
                      {"buffer_mean_age", buffer.mean_age},
                      {"buffer_max_age", static_cast<double>(buffer.max_age)},
                      {"buffer_mean_draws", buffer.mean_draws},
                      {"buffer_tracked_share", buffer.tracked_share}};
  for (const auto& [reason, count] : buffer.evictions)
    line.emplace_back("evicted_" + reason, static_cast<double>(count));
  for (std::size_t i = 0; i < buffer.nearest.size(); ++i) {
    line.emplace_back(cat("nearest_", 100 * i / (buffer.nearest.size() - 1), "%"),
                      buffer.nearest[i]);
  }
  for (const auto& [reason, count] : skipped) {
    std::string key = "skipped_" + reason;
    std::ranges::replace(key, ' ', '_');
    line.emplace_back(key, static_cast<double>(count));
  }
  return line;
}

void Rates::start() { last_ = now(); }

Rates::Counts Rates::now() const {
  return {std::chrono::steady_clock::now(), learner_.update(), learner_.batches_taken(),
          learner_.samples_seen(), learner_.waits()};
}

void Rates::add(MetricsLine& line, double seconds, const Checkpointer::Status& checkpoints) {
  const Counts current = now();
  const double passed = std::chrono::duration<double>(current.time - last_.time).count();
  const auto updates = static_cast<double>(current.updates - last_.updates);
  line.emplace_back("seconds", seconds);
  line.emplace_back("updates_per_s", updates / passed);
  line.emplace_back("samples_per_s", static_cast<double>(current.samples - last_.samples) / passed);
  line.emplace_back("updates_per_batch",
                    updates / static_cast<double>(current.batches - last_.batches));
  line.emplace_back("idle_share", (current.waits.learner_s - last_.waits.learner_s) / passed);
  line.emplace_back("stream_held_share", (current.waits.reader_s - last_.waits.reader_s) / passed);
  line.emplace_back("checkpoint_update", static_cast<double>(checkpoints.last_update));
  line.emplace_back("checkpoint_stall_s", checkpoints.stall_s);
  line.emplace_back("checkpoint_picture_bytes", static_cast<double>(checkpoints.picture_bytes));
  line.emplace_back("checkpoint_failures", static_cast<double>(checkpoints.failures));
  last_ = current;
}

}  // namespace riffle
