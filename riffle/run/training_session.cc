#include "riffle/run/training_session.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "riffle/base/clock.h"
#include "riffle/base/error.h"
#include "riffle/base/log.h"
#include "riffle/base/text.h"
#include "riffle/dist/ranks.h"
#include "riffle/run/buffer_sheet.h"
#include "riffle/run/checkpointer.h"
#include "riffle/run/metrics.h"
#include "riffle/run/metrics_line.h"
#include "riffle/run/run_probes.h"
#include "riffle/run/status_file.h"
#include "riffle/run/stop_signals.h"
#include "riffle/run/tensorboard.h"
#include "riffle/run/training_profile.h"
#include "riffle/stream/shapes/shape.h"

namespace riffle {
namespace {

constexpr double kFillCheckpointSeconds = 600;
constexpr double kProgressSeconds = 0.2;

std::string progress_line(const UpdateReport& report, const Config& config,
                          const ReplayBuffer& buffer, double updates_per_s) {
  const auto& train = config.learner.train;
  const std::string end = train.max_updates > 0 ? cat('/', train.max_updates) : std::string();
  std::string line =
      cat("update ", report.update, end, "  loss ", fixed(report.loss, 4), "  std ",
          fixed(report.std, 3), "  ", fixed(updates_per_s * static_cast<double>(train.batch), 0),
          " images/s  same-clip ", fixed(100 * report.same_clip_pairs, 1), " %  buffer ",
          buffer.size(), '/', buffer.capacity());
  if (train.max_updates > 0) {
    const auto left = static_cast<double>(train.max_updates - report.update) / updates_per_s;
    line += cat("  ", duration_text(left), " left");
  }
  return line;
}

bool has_junk(const std::string& shapes) {
  return std::ranges::any_of(parse_shapes(shapes),
                             [](const Uri& shape) { return shape.scheme() == "junk"; });
}

std::vector<std::pair<std::string, std::string>> config_values(Config config) {
  Fields fields;
  config.describe(fields);
  std::vector<std::pair<std::string, std::string>> values;
  for (const auto& field : fields.all()) values.emplace_back(field.key, field.get());
  return values;
}

// Returns whether the line of this update is the first at or after a multiple of nearest_every.
bool nearest_due(const MetricsConfig& metrics, std::int64_t update) {
  if (metrics.nearest_every == 0) return false;
  const std::int64_t line_before = (update - 1) / metrics.every * metrics.every;
  return update / metrics.nearest_every > line_before / metrics.nearest_every;
}

class Session {
 public:
  // `from`: the checkpoint that the learner and `log` were restored from; null for a new run.
  Session(const RunFolder& folder, const Config& config, Learner& learner, PictureLog log,
          const Checkpoint* from, const TrainingOptions& options)
      : folder_(folder),
        config_(config),
        learner_(learner),
        from_update_(from != nullptr ? from->update : 0),
        signals_([this](const char* why) { stop(why); }, 3600 * config.max_hours),
        checkpointer_(folder, config, learner, std::move(log),
                      from != nullptr ? from->name : std::string()),
        seconds_before_(from != nullptr ? from->seconds : 0),
        rates_(learner),
        has_junk_(has_junk(config.shapes)),
        probes_(folder, config.probe, from_update_, options.probe_program,
                [this](const ProbeRecord& probe) { take_probe(probe); }) {
    if (learner.ranks().first()) {
      metrics_.emplace(folder.metrics(), Thinning{config.metrics.every, config.metrics.dense},
                       from_update_);
      status_.emplace(folder, [&learner, before = learner.samples_seen()](RunStatus& status) {
        const auto arrivals = learner.arrivals();
        status.samples_delivered = before + arrivals.samples;
        status.seconds_since_sample = arrivals.seconds_since_last;
        status.seconds_unreachable = arrivals.unreachable_s;
      });
    }
    if (options.profile) profile_.emplace(learner, open_device(config.learner.device));
  }

  TrainingResult run() {
    try {
      return run_to_end();
    } catch (...) {
      set_state("failed");
      throw;
    }
  }

 private:
  TrainingResult run_to_end() {
    try {
      learn();
    } catch (const StreamError& error) {
      finish_progress();
      // A stream without a single usable batch is bad input, not a failure.
      if (learner_.batches_taken() == 0 && error.kind() == ErrorKind::bad_input) throw;
      keep_and_fail(error);
    } catch (const LostLock&) {
      finish_progress();
      throw;
    } catch (const Error& error) {
      finish_progress();
      checkpointer_.wait();
      const auto last = checkpointer_.status().last;
      if (last.empty()) throw;
      throw Error(
          cat(error.what(), "; the newest checkpoint is ", folder_.state_file(last).string()),
          error.kind());
    }
    finish_progress();
    if (learner_.stopped()) stopped_ = true;  // another rank was told to
    finish();
    if (!stopped_ && learner_.ranks().first()) {
      const auto checkpoints = checkpointer_.status();
      probes_.finish(checkpoints.last, checkpoints.last_update);
      add_last_probe();
    }
    result_.updates = learner_.update();
    result_.samples_seen = learner_.samples_seen();
    result_.skipped = learner_.skipped();
    // A request to stop that came after the last update changed nothing.
    const std::int64_t end = config_.learner.train.max_updates;
    result_.stopped = stopped_ && (end == 0 || learner_.update() < end);
    if (!stopped_ && learner_.update() < end) {
      const auto& learner = config_.learner;
      const std::string more = cat("; with more --updates (now ", learner.train.updates,
                                   ") each sample is used more often");
      log_info(cat("the stream ended after ", learner_.samples_seen(), " samples, at update ",
                   learner_.update(), " of ", end, ". --shape loop would repeat it",
                   learner.buffer.is_none() ? "" : more));
    }
    set_state(result_.stopped ? "stopped" : "done");
    return result_;
  }

  void set_state(const char* state) {
    if (!status_) return;
    status_->set([&](RunStatus& status) {
      status.state = state;
      status.update = learner_.update();
      status.samples_used = learner_.samples_seen();
      status.buffer_size = learner_.buffer().size();
      status.buffer_capacity = learner_.buffer().capacity();
    });
  }

  void stop(const char* why) {
    log_info(cat(why, ": finishing this update and writing a checkpoint"));
    stopped_ = true;
    learner_.stop();
  }

  void learn() {
    const std::int64_t every = config_.checkpoint.every;
    set_state("filling");
    // A slow stream may take hours to fill the buffer, and there are no updates to count yet.
    auto last = Clock::now();
    while (learner_.fill()) {
      // One clock decides for all ranks.
      Ranks& ranks = learner_.ranks();
      const bool due = ranks.any(ranks.first() && seconds_since(last) > kFillCheckpointSeconds);
      if (due) last = Clock::now();
      keep(due, 0);
      set_state("filling");
      show_filling();
    }

    const auto start = Clock::now();
    const std::int64_t before = learner_.update();
    rates_.start();
    double shown = 0;  // seconds since the start
    while (true) {
      // Reading a loss makes a GPU wait, so it is read only when somebody will see it.
      const bool line_due = (learner_.update() + 1) % config_.metrics.every == 0;
      const bool progress_due = seconds_since(start) - shown > kProgressSeconds;
      auto report = learner_.advance(line_due || progress_due);
      if (!report) break;
      const double seconds = seconds_since(start);
      const double updates_per_s = static_cast<double>(report->update - before) / seconds;
      last_ = *report;
      set_state("training");
      result_.images_per_s = updates_per_s * static_cast<double>(config_.learner.train.batch);
      seconds_ = seconds_before_ + seconds;
      if (line_due) write_metrics(*report);
      if (progress_due) {
        shown = seconds;
        show_progress(progress_line(*report, config_, learner_.buffer(), updates_per_s));
        if (learner_.ranks().first()) {
          const auto checkpoints = checkpointer_.status();
          probes_.keep_up(checkpoints.last, checkpoints.last_update);
        }
      }
      const bool to_be_probed = probes_.due(report->update);
      keep(to_be_probed || (every > 0 && report->update % every == 0), seconds_);
      if (profile_) show_profile(profile_->after_update());
    }
    if (profile_) show_profile(profile_->finish());
    if (!last_) return;
    learner_.measure(*last_);
    result_.loss = last_->loss;
    // A run that was stopped continues later with the lines it would have had.
    if (!stopped_ && !learner_.stopped() && last_->update % config_.metrics.every != 0) {
      write_metrics(*last_);
    }
    show_progress(progress_line(*last_, config_, learner_.buffer(),
                                result_.images_per_s / config_.learner.train.batch));
  }

  void show_filling() {
    const auto& buffer = learner_.buffer();
    if (seconds_since(filling_shown_) > kProgressSeconds || buffer.full()) {
      filling_shown_ = Clock::now();
      show_progress(cat("filling the buffer: ", buffer.size(), '/', buffer.capacity(), " samples"));
    }
    const auto period = learner_.stream_period();
    if (!period || warned_of_period_ || *period >= buffer.capacity()) return;
    warned_of_period_ = true;
    finish_progress();
    log_warning(cat("the stream repeats itself after ", *period, " samples: a buffer of ",
                    buffer.capacity(), " holds the same pictures again and again. --capacity ",
                    *period, " is enough for all of them, and less makes the policy choose"));
  }

  static void show_profile(const std::optional<std::string>& table) {
    if (!table) return;
    finish_progress();
    log_info(*table);
  }

  void keep(bool due, double seconds) {
    if (config_.checkpoint.every > 0 || probes_.active()) checkpointer_.keep_up(due, seconds);
  }

  void write_metrics(const UpdateReport& report) {
    if (!metrics_) return;
    const bool nearest = nearest_due(config_.metrics, report.update);
    auto line = metrics_line(report, learner_.buffer().stats(nearest), learner_.skipped());
    if (has_junk_) {
      line.emplace_back("junk_in_batch", report.junk);
      line.emplace_back("junk_in_buffer", learner_.junk_in_buffer());
    }
    rates_.add(line, seconds_, checkpointer_.status());
    last_line_ = {report.update, line};
    log_values([&] {
      metrics_->write(report.update, with_probe(line));
      write_events(report.update, line);
    });
  }

  // A disk that does not take values does not stop training.
  template <typename Write>
  void log_values(const Write& write) {
    folder_.require_in_place();
    try {
      write();
    } catch (const Error& error) {
      if (std::has_single_bit(++metrics_failures_)) {
        log_warning(cat("metrics could not be written (", error.what(), "); training continues"));
      }
    }
  }

  MetricsLine with_probe(MetricsLine line) const {
    if (!probe_) return line;
    line.emplace_back("probe_update", static_cast<double>(probe_->update));
    for (const auto& value : probe_values()) line.push_back(value);
    return line;
  }

  MetricsLine probe_values() const {
    return {{"probe_linear_top1", probe_->linear_top1}, {"probe_knn_top1", probe_->knn_top1}};
  }

  void take_probe(const ProbeRecord& probe) {
    probe_ = probe;
    log_values([&] { events().write_always(probe.update, probe_values()); });
  }

  // The last probe ends after the last line.
  void add_last_probe() {
    if (!probe_ || !last_line_ || probe_->update != last_line_->first) return;
    log_values([&] { metrics_->replace_last(last_line_->first, with_probe(last_line_->second)); });
  }

  EventFile& events() {
    if (!events_) {
      events_.emplace(folder_.tensorboard(), Thinning{config_.metrics.every, config_.metrics.dense},
                      from_update_);
      events_->write_configuration(config_values(config_));
    }
    return *events_;
  }

  void write_events(std::int64_t update, const MetricsLine& line) {
    const Thinning thinning{config_.metrics.every, config_.metrics.dense};
    events().write(update, line);
    // Pictures are large, so there are ever fewer. Of several ranks, none has them all.
    const bool whole = learner_.ranks().alone() && update % config_.metrics.every == 0;
    if (whole && std::has_single_bit(static_cast<std::uint64_t>(thinning.line_of(update)))) {
      events_->write_picture(update, "buffer", buffer_sheet(learner_.buffer()));
    }
  }

  // The stream failed: the run can continue from here once the stream works again.
  [[noreturn]] void keep_and_fail(const StreamError& stream_error) {
    try {
      finish();
    } catch (const std::exception& error) {
      throw Error(cat(stream_error.what(), "; ", error.what()), ErrorKind::failure);
    }
    throw Error(cat(stream_error.what(), "; all until update ", learner_.update(),
                    " is kept. When the stream works again, continue: riffle resume ",
                    folder_.path().string()),
                ErrorKind::failure);
  }

  void finish() {
    try {
      checkpointer_.finish(seconds_);
    } catch (const LostLock&) {
      throw;
    } catch (const Error& error) {
      const auto last = checkpointer_.status().last;
      throw Error(
          cat("the checkpoint of update ", learner_.update(), " could not be written (",
              error.what(), "); the newest is ", last.empty() ? "none" : last,
              ". Make room and continue from there: riffle resume ", folder_.path().string()),
          ErrorKind::failure);
    }
  }

  const RunFolder& folder_;
  const Config& config_;
  Learner& learner_;
  const std::int64_t from_update_;
  std::atomic<bool> stopped_ = false;
  const StopSignals signals_;
  Checkpointer checkpointer_;
  // Of rank 0.
  std::optional<MetricsFile> metrics_;
  std::optional<EventFile> events_;  // made with the first line
  const double seconds_before_;
  double seconds_ = seconds_before_;
  Rates rates_;
  const bool has_junk_;
  std::optional<ProbeRecord> probe_;  // the newest
  std::optional<std::pair<std::int64_t, MetricsLine>> last_line_;
  RunProbes probes_;
  std::optional<StatusFile> status_;  // of rank 0
  std::optional<TrainingProfile> profile_;
  std::optional<UpdateReport> last_;
  std::uint64_t metrics_failures_ = 0;
  Clock::time_point filling_shown_ = Clock::now();
  bool warned_of_period_ = false;
  TrainingResult result_;
};

}  // namespace

TrainingResult run_session(const RunFolder& folder, const Config& config, Learner& learner,
                           PictureLog log, const Checkpoint* from, const TrainingOptions& options) {
  return Session(folder, config, learner, std::move(log), from, options).run();
}

}  // namespace riffle
