#include "riffle/run/training.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <memory>
#include <optional>
#include <thread>

#include <ATen/ATen.h>
#include <unistd.h>

#include "riffle/base/clock.h"
#include "riffle/base/error.h"
#include "riffle/base/free_cores.h"
#include "riffle/base/log.h"
#include "riffle/base/text.h"
#include "riffle/dist/ranks.h"
#include "riffle/run/buffer_sheet.h"
#include "riffle/run/checkpoint.h"
#include "riffle/run/checkpointer.h"
#include "riffle/run/disk_need.h"
#include "riffle/run/metrics.h"
#include "riffle/run/metrics_line.h"
#include "riffle/run/run_folder.h"
#include "riffle/run/run_probes.h"
#include "riffle/run/status_file.h"
#include "riffle/run/stop_signals.h"
#include "riffle/run/tensorboard.h"
#include "riffle/run/training_profile.h"
#include "riffle/stream/shapes/shape.h"
#include "riffle/stream/stream.h"

namespace riffle {
namespace {

constexpr std::array<std::string_view, 11> kResumeKeys = {
    "train.max_updates", "train.threads",   "run.max_hours",         "checkpoint.every",
    "checkpoint.keep",   "checkpoint.wait", "metrics.nearest_every", "probe.train",
    "probe.val",         "probe.every",     "probe.samples"};

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

// One call of train or resume, from a learner that is ready to one that has stopped.
class Session {
 public:
  // `from`: the checkpoint that the learner and `log` were restored from; null for a new run.
  Session(const RunFolder& folder, const Config& config, Learner& learner, PictureLog log,
          const Checkpoint* from, const TrainingOptions& options = {})
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
        probes_(folder, config.probe, options.probe_program) {
    if (learner.ranks().first()) {
      metrics_.emplace(folder.metrics(), Thinning{config.metrics.every, config.metrics.dense},
                       from_update_);
      status_.emplace(folder, [&learner, before = learner.samples_seen()](RunStatus& status) {
        const auto arrivals = learner.arrivals();
        status.samples_delivered = before + arrivals.samples;
        status.seconds_since_sample = arrivals.seconds_since_last;
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
          cat(error.what(), "; the last good checkpoint is ", folder_.state_file(last).string()),
          error.kind());
    }
    finish_progress();
    if (learner_.stopped()) stopped_ = true;  // another rank was told to
    finish();
    if (!stopped_ && learner_.ranks().first()) {
      const auto checkpoints = checkpointer_.status();
      probes_.finish(checkpoints.last, checkpoints.last_update);
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
    const auto& metrics = config_.metrics;
    const bool nearest = metrics.nearest_every > 0 && report.update % metrics.nearest_every == 0;
    auto line = metrics_line(report, learner_.buffer().stats(nearest), learner_.skipped());
    if (has_junk_) {
      line.emplace_back("junk_in_batch", report.junk);
      line.emplace_back("junk_in_buffer", learner_.junk_in_buffer());
    }
    rates_.add(line, seconds_, checkpointer_.status());
    if (const auto& probe = probes_.newest()) {
      line.emplace_back("probe_update", static_cast<double>(probe->update));
      line.emplace_back("probe_linear_top1", probe->linear_top1);
      line.emplace_back("probe_knn_top1", probe->knn_top1);
    }
    folder_.require_in_place();
    try {
      metrics_->write(report.update, line);
      write_events(report.update, line);
    } catch (const Error& error) {
      if (std::has_single_bit(++metrics_failures_)) {
        log_warning(cat("metrics could not be written (", error.what(), "); training continues"));
      }
    }
  }

  void write_events(std::int64_t update, const MetricsLine& line) {
    const Thinning thinning{config_.metrics.every, config_.metrics.dense};
    if (!events_) {
      events_.emplace(folder_.tensorboard(), thinning, from_update_);
      events_->write_configuration(config_values(config_));
    }
    events_->write(update, line);
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
  RunProbes probes_;
  std::optional<StatusFile> status_;  // of rank 0
  std::optional<TrainingProfile> profile_;
  std::optional<UpdateReport> last_;
  std::uint64_t metrics_failures_ = 0;
  Clock::time_point filling_shown_ = Clock::now();
  bool warned_of_period_ = false;
  TrainingResult result_;
};

PictureLog picture_log(const RunFolder& folder, const Learner& learner) {
  Ranks& ranks = learner.ranks();
  PictureLog log(folder.checkpoints(), learner.buffer().slots(), learner.buffer().stored_bytes(),
                 {ranks.rank(), ranks.size()});
  ranks.wait_for_all();  // see picture_log.h
  return log;
}

// The run as this rank takes part in it.
struct Part {
  Ranks& ranks = ranks_of_process();
  std::unique_ptr<Stream> stream;
  LearnerConfig learner;
  bool own_streams = false;

  explicit Part(const Config& config) : learner(config.learner) {
    if (!ranks.first()) set_log_level(LogLevel::warnings);
    const std::string uri = for_this_rank(config.stream);
    const std::string shapes = for_this_rank(config.shapes);
    own_streams = uri != config.stream || shapes != config.shapes;
    learner.device = for_this_rank(learner.device);
    if (!ranks.alone() && learner.train.fresh_samples() > 0 && learner.model.align_weight > 0) {
      throw Error("train.fresh and align.weight together do not work on several ranks yet");
    }
    stream = open_stream(uri, shapes);
  }

  Sharing sharing() const { return {ranks, own_streams}; }

 private:
  std::string for_this_rank(std::string text) const {
    replace_all(text, "{rank}", std::to_string(ranks.rank()));
    replace_all(text, "{ranks}", std::to_string(ranks.size()));
    replace_all(text, "{local_rank}", std::to_string(ranks.local_rank()));
    return text;
  }
  static void replace_all(std::string& text, std::string_view name, const std::string& value) {
    for (auto at = text.find(name); at != std::string::npos; at = text.find(name)) {
      text.replace(at, name.size(), value);
    }
  }
};

// Returns the cores for each of the ranks of a machine, by rank 0's: a run has one number.
std::int64_t threads_a_rank(Ranks& ranks) {
  const std::int64_t cores = std::thread::hardware_concurrency();
  // A launcher that binds ranks to cores has divided them already.
  const bool bound = cores < ::sysconf(_SC_NPROCESSORS_ONLN);
  const std::int64_t here = std::max<std::int64_t>(1, bound ? cores : cores / ranks.local_size());
  return std::stoll(ranks.gather_bytes(std::to_string(here))[0]);
}

// Rank 0 makes or opens the folder with `open`; then the others open it too.
template <typename Open>
RunFolder open_together(const std::filesystem::path& path, Ranks& ranks, const Open& open) {
  std::optional<RunFolder> folder;
  if (ranks.first()) folder = open();
  ranks.wait_for_all();
  return folder ? *folder : RunFolder::open(path);
}

// Throws DamagedCheckpoint on all ranks if the part of one is damaged. Returns how many pictures
// were replaced.
std::int64_t restore_together(const Checkpoint& checkpoint, Learner& learner, PictureLog& log,
                              DamagedPictures damaged) {
  std::int64_t replaced = 0;
  std::string why;
  try {
    replaced = restore_checkpoint(checkpoint, learner, log, damaged);
  } catch (const DamagedCheckpoint& error) {
    why = error.what();
  }
  if (learner.ranks().any(!why.empty())) {
    throw DamagedCheckpoint(why.empty() ? "pictures of another rank are damaged" : why);
  }
  return learner.ranks().sum(at::full({1}, replaced, at::kLong)).item<std::int64_t>();
}

// More threads than free cores make a run slower than fewer would. Returns how many it gets: those
// asked for, or for 0 as many as cores are free now.
std::int64_t chosen_threads(std::int64_t asked) {
  const auto cores = std::max<std::int64_t>(1, std::thread::hardware_concurrency());
  if (asked == 1 || cores == 1) return 1;
  const double free_cores = measure_free_cores();
  const std::int64_t fit = threads_for(free_cores);
  const std::int64_t threads = asked > 0 ? asked : fit;
  if (fit >= std::min(cores, asked > 0 ? asked : cores)) return threads;
  const std::string why = cat("of ", cores, " cores, ", fixed(free_cores, 1), " are free now: ");
  if (asked > 0) {
    log_info(cat(why, "with --threads ", fit, " instead of ", asked, " this run may be faster"));
  } else {
    log_info(cat(why, "this run has ", fit, " threads and keeps them; --threads ", cores,
                 " takes all cores"));
  }
  return threads;
}

TrainingResult begin(const RunFolder& folder, const Config& config, Learner& learner,
                     const TrainingOptions& options = {}) {
  log_info(cat("run ", folder.path().string(), ": filling a buffer of ",
               learner.buffer().capacity(), " from ", config.stream));
  tell_disk_need(folder, config, learner);
  return Session(folder, config, learner, picture_log(folder, learner), nullptr, options).run();
}

bool may_change(const std::string& key) {
  return std::ranges::find(kResumeKeys, key) != kResumeKeys.end();
}

void require_resume_keys(const std::vector<std::string>& assignments) {
  for (const auto& assignment : assignments) {
    const std::string key = assignment.substr(0, assignment.find('='));
    if (may_change(key)) continue;
    const std::vector<std::string> valid(kResumeKeys.begin(), kResumeKeys.end());
    throw Error(cat(key, " cannot change within a run; only ", join(valid, ", "), " can"));
  }
}

// A flipped bit or a lost line of config.yaml would otherwise continue another run.
void require_same_config(const RunFolder& folder, Config config, const Checkpoint& checkpoint,
                         EditedConfig edited) {
  if (checkpoint.config.empty()) return;
  ConfigBuilder made_with;
  made_with.read_yaml_text(checkpoint.config, cat("the configuration in ", checkpoint.name));
  Fields fields;
  config.describe(fields);
  std::vector<std::string> differ;
  for (const auto& field : fields.all()) {
    const std::string before = made_with.fields().get(field.key);
    if (field.get() == before || may_change(field.key)) continue;
    differ.push_back(cat(field.key, " is '", field.get(), "', was '", before, "'"));
  }
  if (differ.empty()) return;
  const std::string what = cat(folder.path().string(), ": config.yaml is not the one that ",
                               checkpoint.name, " was made with: ", join(differ, "; "));
  if (edited == EditedConfig::refuse) {
    throw Error(cat(what, ". Undo the change, or continue with it: --edited-config"));
  }
  log_warning(cat(what, "; from here on the run is no longer the one it would have been"));
}

void require_end_ahead(const Config& config, std::int64_t update) {
  const std::int64_t end = config.learner.train.max_updates;
  if (end == 0 || update <= end) return;
  throw Error(cat("the run has made ", update, " updates, more than --max-updates ", end));
}

}  // namespace

TrainingResult train(Config config, const std::filesystem::path& path,
                     const TrainingOptions& options) {
  Ranks& ranks = ranks_of_process();
  if (ranks.first()) RunFolder::require_free(path);
  // The number of threads is a part of the run, so that it continues the same on another machine.
  // So is the number of samples: a capacity in bytes holds fewer with more threads.
  auto& threads = config.learner.train.threads;
  threads = ranks.alone()  ? chosen_threads(threads)
            : threads == 0 ? threads_a_rank(ranks)
                           : threads;
  const Part part(config);
  Learner learner(part.learner, *part.stream, part.sharing());
  auto& buffer = config.learner.buffer;
  if (!buffer.is_none()) buffer.capacity = std::to_string(learner.buffer().capacity());
  const auto folder = open_together(path, ranks, [&] { return RunFolder::create(path, config); });
  return begin(folder, config, learner, options);
}

TrainingResult resume(const std::filesystem::path& path,
                      const std::vector<std::string>& assignments, EditedConfig edited,
                      const TrainingOptions& options) {
  require_resume_keys(assignments);
  Ranks& ranks = ranks_of_process();
  const auto folder = open_together(path, ranks, [&] {
    auto opened = RunFolder::open_to_write(path);
    remove_temporary_files(opened.path());
    remove_temporary_files(opened.checkpoints());
    return opened;
  });
  const Config config = folder.config(assignments);
  // All have read it before one of them changes it.
  const auto keep_config = [&] {
    ranks.wait_for_all();
    if (ranks.first() && !assignments.empty()) folder.write_config(config);
  };

  std::vector<std::string> damaged;
  auto names = folder.checkpoint_names();
  auto damaged_pictures = DamagedPictures::refuse;
  while (true) {
    try {
      std::optional<Checkpoint> checkpoint;
      if (!names.empty()) {
        checkpoint = read_checkpoint(folder, names.back());
        // First: the stream and the learner of another configuration may not even open.
        require_same_config(folder, config, *checkpoint, edited);
        require_end_ahead(config, checkpoint->update);
      }
      Part part(config);
      if (checkpoint) part.learner.model.init.clear();  // it has the weights
      Learner learner(part.learner, *part.stream, part.sharing());
      if (!checkpoint) {
        if (!damaged.empty()) throw Error(cat("no checkpoint of ", path.string(), " is whole"));
        const auto state = folder.latest_checkpoint();
        if (state && checkpoint_version(*state) == 1) {
          throw Error(cat(state->string(),
                          " is of version 1, without the buffer: it can be probed, ",
                          "but not resumed"));
        }
        log_info(cat(path.string(), " has no checkpoint yet: it starts again"));
        keep_config();
        return begin(folder, config, learner, options);
      }
      auto log = picture_log(folder, learner);
      const auto replaced = restore_together(*checkpoint, learner, log, damaged_pictures);
      if (replaced > 0) {
        log_warning(cat(replaced, " of ", learner.buffer().size(), " pictures in the buffer of ",
                        checkpoint->name,
                        " are damaged; others take their places, so from here on ",
                        "the run is no longer the one it would have been"));
      }
      checkpoint->state.clear();
      if (ranks.first()) {
        for (const auto& name : damaged) folder.set_aside(name);
      }
      keep_config();
      if (checkpoint->ranks != ranks.size()) {
        log_info(cat("the buffer was divided by ", checkpoint->ranks, " and is now divided by ",
                     ranks.size(), " ranks"));
      }
      const bool done = checkpoint->update == config.learner.train.max_updates;
      log_info(cat("run ", path.string(),
                   done ? " has made all its updates; with more --max-updates it continues from "
                        : " continues after update ",
                   checkpoint->update));
      return Session(folder, config, learner, std::move(log), &*checkpoint, options).run();
    } catch (const DamagedCheckpoint& error) {
      log_warning(cat("checkpoint ", names.back(), " cannot be used: ", error.what(),
                      names.size() > 1 ? cat("; going back to ", names[names.size() - 2]) : ""));
      damaged.push_back(names.back());
      names.pop_back();
      if (names.empty() && damaged_pictures == DamagedPictures::refuse) {
        // All checkpoints share old pictures. A few damaged ones are no reason to lose the rest.
        damaged_pictures = DamagedPictures::replace;
        names.assign(damaged.rbegin(), damaged.rend());
        damaged.clear();
      }
    }
  }
}

}  // namespace riffle
