#include "riffle/study/study_jobs.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <iostream>
#include <memory>
#include <ranges>
#include <stdexcept>
#include <thread>

#include <poll.h>
#include <sys/prctl.h>

#include "riffle/base/child_process.h"
#include "riffle/base/clock.h"
#include "riffle/base/error.h"
#include "riffle/base/log.h"
#include "riffle/base/text.h"
#include "riffle/run/metrics_history.h"
#include "riffle/run/run_folder.h"
#include "riffle/run/stop_signals.h"
#include "riffle/stream/decoding.h"
#include "riffle/study/study_probe.h"
#include "riffle/study/study_runner.h"

namespace riffle {
namespace fs = std::filesystem;
namespace {

// A worker's answers.
constexpr std::string_view kDone = "done";
constexpr std::string_view kStopped = "stopped";
constexpr std::string_view kFailed = "failed ";

constexpr int kPollMilliseconds = 200;

struct Worker {
  explicit Worker(const std::vector<std::string>& command)
      : process(std::make_unique<ChildProcess>(command, ChildErrors::piped)) {}

  std::unique_ptr<ChildProcess> process;
  std::optional<std::size_t> run;  // at work on it
  std::string last_words;          // on standard error
};

class WorkerPool {
 public:
  using Ended = std::function<void(std::size_t, const std::optional<std::string>&)>;

  WorkerPool(const std::vector<const StudyRun*>& runs, const fs::path& out, const StudyJobs& jobs,
             const Ended& ended)
      : runs_(runs), out_(out), jobs_(jobs), ended_(ended), updates_(runs.size(), 0) {
    for (std::size_t i = 0; i < runs.size(); ++i) {
      look_at(i);
      total_ += updates_of(i);
    }
    at_start_ = done_updates();
  }

  // False: stopped.
  bool make_all() {
    const StopSignals signals(
        [this](const char* why) {
          log_info(cat(why, ": the runs finish their updates and write checkpoints"));
          stop_ = true;
        },
        0);
    while (finished_ < runs_.size() && (!stop_ || !workers_.empty())) {
      hand_out();
      wait_for_words();
      for (auto& worker : workers_) listen(worker);
      std::erase_if(workers_, [](const Worker& worker) { return worker.process->ended(); });
      show();
    }
    finish_progress();
    return finished_ == runs_.size();
  }

 private:
  std::int64_t updates_of(std::size_t run) const {
    return runs_[run]->config.learner.train.max_updates;
  }

  void hand_out() {
    if (stop_ && !told_) {
      told_ = true;
      for (const auto& worker : workers_) worker.process->signal(SIGTERM);
    }
    const auto idle = [](const Worker& worker) { return !worker.run; };
    if (stop_) {
      for (auto& worker : workers_ | std::views::filter(idle)) worker.process->close_input();
      return;
    }
    while (next_ < runs_.size()) {
      auto worker = std::ranges::find_if(workers_, idle);
      if (worker == workers_.end()) {
        if (std::ssize(workers_) >= jobs_.count) return;
        workers_.emplace_back(jobs_.worker);
        worker = std::prev(workers_.end());
      }
      log_info(cat("run ", next_ + 1, " of ", runs_.size(), ": ", runs_[next_]->slug));
      worker->run = next_;
      worker->last_words.clear();
      worker->process->write_line(runs_[next_++]->slug);
    }
  }

  void wait_for_words() const {
    std::vector<pollfd> all;
    for (const auto& worker : workers_) {
      all.push_back({worker.process->output(), POLLIN, 0});
      all.push_back({worker.process->errors(), POLLIN, 0});  // poll(2) passes over closed ones
    }
    ::poll(all.data(), all.size(), kPollMilliseconds);
  }

  void listen(Worker& worker) {
    const auto answers = worker.process->lines();
    for (const auto& line : worker.process->error_lines()) relay(worker, line);
    for (const auto& answer : answers) {
      if (!worker.run) continue;
      if (answer == kDone) {
        finish(worker, std::nullopt);
      } else if (answer.starts_with(kFailed)) {
        finish(worker, answer.substr(kFailed.size()));
      } else if (answer == kStopped && !stop_) {
        finish(worker, "stopped by a signal");
      }
    }
    if (!worker.process->ended()) return;
    const std::string how = worker.process->wait();
    if (!worker.run || stop_) return;
    finish(worker, cat("its process ended with ", how, worker.last_words.empty() ? "" : ": ",
                       worker.last_words));
  }

  void relay(Worker& worker, const std::string& line) {
    constexpr std::string_view kWarning = "warning: ";
    const std::string slug = worker.run ? runs_[*worker.run]->slug : "worker";
    const auto at = line.find(kWarning);
    if (at != std::string::npos) {
      log_warning(cat(slug, ": ", line.substr(at + kWarning.size())));
    } else if (!line.empty()) {
      worker.last_words = line;
      log_debug(cat(slug, ": ", line));
    }
  }

  void finish(Worker& worker, const std::optional<std::string>& failure) {
    const std::size_t run = *worker.run;
    worker.run.reset();
    updates_[run] = updates_of(run);
    ++finished_;
    ended_(run, failure);
  }

  void look_at(std::size_t run) {
    const fs::path path = run_folder_of(out_, *runs_[run]);
    try {
      if (!RunFolder::is_run(path)) return;
      updates_[run] = std::max(updates_[run], newest_update(RunFolder::open(path).metrics()));
    } catch (const Error&) {  // in the middle of a change: there will be another look
    }
  }

  std::int64_t done_updates() const {
    std::int64_t sum = 0;
    for (const auto updates : updates_) sum += updates;
    return sum;
  }

  void show() {
    for (const auto& worker : workers_) {
      if (worker.run) look_at(*worker.run);
    }
    const double made = static_cast<double>(done_updates() - at_start_);
    if (made <= 0) return;
    const double per_second = made / seconds_since(start_);
    const double left = static_cast<double>(total_ - done_updates());
    show_progress(cat(fixed(100 * (1 - left / static_cast<double>(total_)), 0), " %  ", finished_,
                      " of ", runs_.size(), " runs done  ", fixed(per_second, 0), " updates/s  ",
                      duration_text(left / per_second), " left"));
  }

  const std::vector<const StudyRun*>& runs_;
  const fs::path& out_;
  const StudyJobs& jobs_;
  const Ended& ended_;
  const Clock::time_point start_ = Clock::now();
  std::vector<std::int64_t> updates_;  // by run: as far as it is known
  std::int64_t total_ = 0;
  std::int64_t at_start_ = 0;
  std::size_t next_ = 0;
  std::size_t finished_ = 0;
  std::atomic<bool> stop_ = false;
  bool told_ = false;
  std::vector<Worker> workers_;
};

}  // namespace

bool make_runs_in_workers(
    const std::vector<const StudyRun*>& runs, const fs::path& out, const StudyJobs& jobs,
    const std::function<void(std::size_t, const std::optional<std::string>&)>& ended) {
  if (jobs.worker.empty()) throw std::logic_error("several jobs need the command of a worker");
  return WorkerPool(runs, out, jobs, ended).make_all();
}

void serve_runs(const Study& study, const fs::path& out, std::int64_t jobs) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  set_log_level(LogLevel::warnings);
  const std::int64_t cores = std::max(1u, std::thread::hardware_concurrency());
  const std::int64_t share = std::max<std::int64_t>(1, cores / std::max<std::int64_t>(1, jobs));
  set_decoding_threads(static_cast<int>(share));
  const auto runs = expand(study);
  StudyProbe probe(study.probe);
  for (std::string slug; std::getline(std::cin, slug);) {
    const auto run = std::ranges::find(runs, slug, &StudyRun::slug);
    if (run == runs.end()) throw Error(cat("the study has no run ", slug));
    try {
      const bool done = make_run(*run, out, probe, share).has_value();
      std::cout << (done ? kDone : kStopped) << std::endl;
      if (!done) return;
    } catch (const std::exception& error) {
      const std::string why = error.what();
      std::cout << kFailed << why.substr(0, why.find('\n')) << std::endl;
    }
  }
}

}  // namespace riffle
