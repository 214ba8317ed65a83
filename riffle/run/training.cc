#include "riffle/run/training.h"

#include <chrono>
#include <cmath>

#include "riffle/base/error.h"
#include "riffle/base/log.h"
#include "riffle/base/text.h"
#include "riffle/run/checkpoint.h"
#include "riffle/run/metrics.h"
#include "riffle/run/run_folder.h"
#include "riffle/stream/stream.h"

namespace riffle {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string progress_line(const UpdateReport& report, const Config& config,
                          const ReplayBuffer& buffer, double seconds) {
  const auto& train = config.learner.train;
  const double rate = static_cast<double>(report.update) / seconds;
  return cat("update ", report.update, '/', train.max_updates, "  loss ", fixed(report.loss, 4),
             "  std ", fixed(report.std, 3), "  ",
             fixed(rate * static_cast<double>(train.batch), 0), " images/s  same-clip ",
             fixed(100 * report.same_clip_pairs, 1), " %  buffer ", buffer.size(), '/',
             buffer.capacity(), "  ",
             duration_text(static_cast<double>(train.max_updates - report.update) / rate), " left");
}

std::vector<std::pair<std::string, double>> metrics_line(const UpdateReport& report,
                                                         const BufferStats& buffer,
                                                         double seconds) {
  std::vector<std::pair<std::string, double>> line = {
      {"update", static_cast<double>(report.update)},
      {"samples_seen", static_cast<double>(report.samples_seen)},
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
  line.emplace_back("seconds", seconds);
  return line;
}

}  // namespace

TrainingResult train(const Config& config, const std::filesystem::path& path) {
  RunFolder::require_free(path);
  const auto stream = open_stream(config.stream);
  Learner learner(config.learner, *stream);
  const auto folder = RunFolder::create(path, config);
  MetricsFile metrics(folder.metrics());
  TrainingResult result;

  log_info(cat("run ", folder.path().string(), ": filling a buffer of ",
               learner.buffer().capacity(), " from ", config.stream));
  Clock::time_point start;  // of training, when the buffer is full
  while (const auto report = learner.advance()) {
    if (report->update == 1) start = Clock::now();
    const double seconds = seconds_since(start);
    result.updates = report->update;
    result.samples_seen = report->samples_seen;
    result.loss = report->loss;
    if (report->update % config.metrics.every == 0) {
      const bool nearest =
          config.metrics.nearest_every > 0 && report->update % config.metrics.nearest_every == 0;
      metrics.write(metrics_line(*report, learner.buffer().stats(nearest), seconds));
    }
    if (seconds > 0 && report->update > 1) {
      result.images_per_s =
          static_cast<double>((report->update - 1) * config.learner.train.batch) / seconds;
      show_progress(progress_line(*report, config, learner.buffer(), seconds));
    }
    if (config.checkpoint.every > 0 && report->update % config.checkpoint.every == 0) {
      save_checkpoint(folder.checkpoint(report->update), learner, report->update);
    }
  }
  finish_progress();
  save_checkpoint(folder.checkpoint(result.updates), learner, result.updates);
  result.skipped = stream->skipped();
  return result;
}

}  // namespace riffle
