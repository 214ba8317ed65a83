#include "riffle/run/training.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <thread>

#include <ATen/ATen.h>

#include "riffle/base/checksum.h"
#include "riffle/base/error.h"
#include "riffle/base/free_cores.h"
#include "riffle/base/log.h"
#include "riffle/base/text.h"
#include "riffle/dist/ranks.h"
#include "riffle/model/encoder_weights.h"
#include "riffle/run/checkpoint.h"
#include "riffle/run/checkpoint_config.h"
#include "riffle/run/disk_need.h"
#include "riffle/run/run_folder.h"
#include "riffle/run/training_session.h"
#include "riffle/stream/stream.h"
#include "riffle/train/learner_state.h"

namespace riffle {
namespace {

constexpr std::array<std::string_view, 11> kResumeKeys = {
    "train.max_updates", "train.threads",   "run.max_hours",         "checkpoint.every",
    "checkpoint.keep",   "checkpoint.wait", "metrics.nearest_every", "probe.train",
    "probe.val",         "probe.every",     "probe.samples"};

PictureLog picture_log(const RunFolder& folder, const Learner& learner) {
  Ranks& ranks = learner.ranks();
  // By rank 0's listing: a network file system may show the others an old one.
  const std::string first =
      ranks.from_first(std::to_string(PictureLog::next_segment(folder.checkpoints())));
  return {folder.checkpoints(),
          learner.buffer().slots(),
          learner.buffer().stored_bytes(),
          {ranks.rank(), ranks.size(), std::stoll(first)}};
}

// Opens the stream of the run as this rank takes part in it.
RankStream open_run_stream(const Config& config, Ranks& ranks) {
  if (!ranks.first()) set_log_level(LogLevel::warnings);
  return open_rank_stream(config.stream, config.shapes, ranks);
}

// Ranks of different versions, or started with different options, would part sooner or later.
void require_same_run(Ranks& ranks, const Config& config, const TrainingOptions& options) {
  ranks.require_same(checksum(config_yaml(config) + options.version),
                     "the configuration and version",
                     "start all with the same options and the same riffle");
}

// Rank 0 makes or opens the folder with `open`; then the others open it too.
template <typename Open>
RunFolder open_together(const std::filesystem::path& path, Ranks& ranks, const Open& open) {
  std::optional<RunFolder> folder;
  if (ranks.first()) folder = open();
  ranks.wait_for_all();
  return folder ? *folder : RunFolder::open_beside(path);
}

// Returns the checkpoints that rank 0 sees, oldest first.
std::vector<std::string> checkpoint_names(const RunFolder& folder, Ranks& ranks) {
  const std::string names = ranks.from_first(join(folder.checkpoint_names(), "\n"));
  return names.empty() ? std::vector<std::string>() : split(names, '\n');
}

// Returns what `call` returns. Throws DamagedCheckpoint on all ranks if it does on one: they must
// continue from the same checkpoint.
template <typename Call>
auto damaged_for_all(Ranks& ranks, const Call& call) {
  std::optional<decltype(call())> result;
  std::string why;
  try {
    result = call();
  } catch (const DamagedCheckpoint& error) {
    why = error.what();
  }
  why = ranks.first_error(why);
  if (!why.empty()) throw DamagedCheckpoint(why);
  return *std::move(result);
}

// More threads than free cores make a run slower than fewer would. The number is a part of the run
// and must not depend on the hour, so it is only said.
void warn_of_busy_cores(std::int64_t threads) {
  if (threads == 1) return;
  const double free_cores = measure_free_cores();
  const std::int64_t fit = threads_for(free_cores);
  if (fit >= std::min<std::int64_t>(threads, std::thread::hardware_concurrency())) return;
  log_info(cat("of ", std::thread::hardware_concurrency(), " cores, ", fixed(free_cores, 1),
               " are free now: with --threads ", fit, " instead of ", threads,
               " this run may be faster"));
}

TrainingResult begin(const RunFolder& folder, const Config& config, Learner& learner,
                     const TrainingOptions& options) {
  log_info(cat("run ", folder.path().string(), ": filling a buffer of ",
               learner.buffer().capacity(), " from ", config.stream));
  if (learner.ranks().alone()) warn_of_busy_cores(config.learner.train.threads);
  tell_disk_need(folder, config, learner);
  return run_session(folder, config, learner, picture_log(folder, learner), nullptr, options);
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

void require_same_config(const RunFolder& folder, const Config& config,
                         const Checkpoint& checkpoint, EditedConfig edited) {
  auto changed = changed_keys(config, checkpoint.config, checkpoint.name);
  const auto fixed = std::ranges::stable_partition(
      changed, [](const ChangedKey& each) { return may_change(each.key); });
  const std::vector<ChangedKey> free(changed.begin(), fixed.begin());
  if (!fixed.empty()) {
    const std::string what = changed_config_text(folder.path(), checkpoint.name, fixed);
    if (edited == EditedConfig::refuse) {
      throw Error(cat(what, ". Undo the change, or continue with it: --edited-config"));
    }
    log_warning(cat(what, "; from here on the run is no longer the one it would have been"));
  }
  for (const auto& [key, now, before] : free) {
    if (!ranks_of_process().first()) break;
    log_info(cat("continues with ", key, "='", now, "', was '", before, "'"));
  }
  require_saved_widths(config.learner.model, saved_network(checkpoint.state));
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
  if (threads == 0) threads = threads_per_rank(ranks);
  require_same_run(ranks, config, options);
  const RankStream source = open_run_stream(config, ranks);
  Learner learner(config.learner, *source.stream, source.sharing);
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
  Config config = folder.config(assignments);
  auto& threads = config.learner.train.threads;
  if (threads == 0) threads = threads_per_rank(ranks);
  require_same_run(ranks, config, options);
  // All have read it before one of them changes it.
  const auto keep_config = [&] {
    ranks.wait_for_all();
    if (ranks.first() && !assignments.empty()) folder.write_config(config);
  };

  std::vector<std::string> damaged;
  auto names = checkpoint_names(folder, ranks);
  auto damaged_pictures = DamagedPictures::refuse;
  while (true) {
    try {
      std::optional<Checkpoint> checkpoint;
      if (!names.empty()) {
        checkpoint = damaged_for_all(ranks, [&] { return read_checkpoint(folder, names.back()); });
        // First: the stream and the learner of another configuration may not even open.
        require_same_config(folder, config, *checkpoint, edited);
        require_end_ahead(config, checkpoint->update);
      }
      const RankStream source = open_run_stream(config, ranks);
      LearnerConfig learner_config = config.learner;
      if (checkpoint) learner_config.model.init.clear();  // it has the weights
      Learner learner(learner_config, *source.stream, source.sharing);
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
      const std::int64_t replaced_here = damaged_for_all(
          ranks, [&] { return restore_checkpoint(*checkpoint, learner, log, damaged_pictures); });
      const auto replaced = ranks.sum(at::full({1}, replaced_here, at::kLong)).item<std::int64_t>();
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
      const std::int64_t end = config.learner.train.max_updates;  // 0: none
      const bool done = end > 0 && checkpoint->update == end;
      log_info(cat("run ", path.string(),
                   done ? " has made all its updates; with more --max-updates it continues from "
                        : " continues after update ",
                   checkpoint->update));
      return run_session(folder, config, learner, std::move(log), &*checkpoint, options);
    } catch (const DamagedCheckpoint& error) {
      if (ranks.first()) {
        log_warning(cat("checkpoint ", names.back(), " cannot be used: ", error.what(),
                        names.size() > 1 ? cat("; going back to ", names[names.size() - 2]) : ""));
      }
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
