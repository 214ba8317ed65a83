#include "riffle/study/comparison.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include <ATen/Parallel.h>

#include "riffle/base/clock.h"
#include "riffle/base/log.h"
#include "riffle/base/text.h"
#include "riffle/stream/stream.h"
#include "riffle/train/learner.h"

namespace riffle {
namespace {

constexpr std::int64_t kCurvePoints = 60;
constexpr std::size_t kBufferPictures = 48;

// Pictures from evenly spaced places of the buffer, in order of arrival.
std::vector<Picture> pick_pictures(const ReplayBuffer& buffer, std::size_t count) {
  auto slots = buffer.live();
  std::sort(slots.begin(), slots.end(),
            [&](Slot a, Slot b) { return buffer.info(a).arrival < buffer.info(b).arrival; });
  count = std::min(count, slots.size());
  std::vector<Picture> pictures;
  for (std::size_t i = 0; i < count; ++i) {
    const Slot slot = slots[i * slots.size() / count];
    const Pictures row = buffer.pictures(std::span(&slot, 1));
    const auto stored = row.tensor[row.indices.front()].cpu().contiguous();
    Picture picture(static_cast<int>(stored.size(1)), static_cast<int>(stored.size(0)));
    std::memcpy(picture.rgb.data(), stored.data_ptr<std::uint8_t>(), picture.rgb.size());
    pictures.push_back(std::move(picture));
  }
  return pictures;
}

RunOutcome run_mode(const Config& config, const ComparisonPlan& plan,
                    std::atomic<std::int64_t>& updates_done) {
  const auto start = Clock::now();
  const auto stream = open_stream(config.stream, config.shapes);
  Learner learner(config.learner, *stream);
  const std::int64_t every =
      std::max<std::int64_t>(1, config.learner.train.max_updates / kCurvePoints);

  RunOutcome outcome;
  CurvePoint sum;  // since the last point of the curve
  double same_clip_pairs = 0;
  while (const auto report = learner.advance()) {
    ++updates_done;
    outcome.updates = report->update;
    same_clip_pairs += report->same_clip_pairs;
    sum.loss += report->loss;
    sum.std += report->std;
    sum.same_clip_pairs += report->same_clip_pairs;
    if (report->update % every != 0) continue;
    const auto n = static_cast<double>(every);
    outcome.curve.push_back({report->update, sum.loss / n, sum.std / n, sum.same_clip_pairs / n,
                             static_cast<double>(learner.buffer().distinct_clips())});
    sum = {};
  }
  outcome.same_clip_pairs =
      same_clip_pairs / static_cast<double>(std::max<std::int64_t>(1, outcome.updates));
  outcome.clips_in_buffer = learner.buffer().distinct_clips();
  outcome.buffer_pictures = pick_pictures(learner.buffer(), kBufferPictures);
  outcome.seconds = seconds_since(start);
  outcome.probe = probe(learner.objective(), plan.probe_train, plan.probe_val, plan.recipe);
  return outcome;
}

Config seeded(const Mode& mode, std::uint64_t seed) {
  Config config = mode.config;
  config.learner.seed = seed;
  config.learner.train.threads = 1;
  config.stream += cat(config.stream.find('?') == std::string::npos ? '?' : '&', "seed=", seed);
  return config;
}

}  // namespace

double ModeOutcome::mean(const std::function<double(const RunOutcome&)>& value) const {
  double sum = 0;
  for (const auto& run : runs) sum += value(run);
  return runs.empty() ? 0 : sum / static_cast<double>(runs.size());
}
double ModeOutcome::linear_top1() const {
  return mean([](const RunOutcome& run) { return run.probe.linear_top1; });
}
double ModeOutcome::knn_top1() const {
  return mean([](const RunOutcome& run) { return run.probe.knn_top1; });
}
double ModeOutcome::same_clip_pairs() const {
  return mean([](const RunOutcome& run) { return run.same_clip_pairs; });
}
double ModeOutcome::clips_in_buffer() const {
  return mean([](const RunOutcome& run) { return static_cast<double>(run.clips_in_buffer); });
}

Comparison compare(const ComparisonPlan& plan) {
  Comparison comparison;
  for (const auto& mode : plan.modes) {
    comparison.modes.push_back(
        {mode.name, mode.title, std::vector<RunOutcome>(static_cast<std::size_t>(plan.repeats))});
  }
  const std::size_t jobs = plan.modes.size() * static_cast<std::size_t>(plan.repeats);
  std::int64_t updates_total = 0;
  for (const auto& mode : plan.modes)
    updates_total += mode.config.learner.train.max_updates * plan.repeats;

  // One core a run: a small network gains little from a second, two runs gain all of it.
  const std::size_t cores = plan.threads > 0 ? static_cast<std::size_t>(plan.threads)
                                             : std::max(1u, std::thread::hardware_concurrency());
  std::atomic<std::size_t> next = 0;
  std::atomic<std::int64_t> updates_done = 0;
  std::atomic<std::size_t> working = std::min(cores, jobs);
  std::exception_ptr error;
  std::mutex error_mutex;
  const auto work = [&] {
    at::set_num_threads(1);
    try {
      for (auto job = next++; job < jobs; job = next++) {
        const std::size_t repeat = job / plan.modes.size();
        const std::size_t mode = job % plan.modes.size();
        comparison.modes[mode].runs[repeat] =
            run_mode(seeded(plan.modes[mode], plan.seed * 1000 + repeat), plan, updates_done);
      }
    } catch (...) {
      next = jobs;
      const std::lock_guard lock(error_mutex);
      error = std::current_exception();
    }
    --working;
  };

  const auto start = Clock::now();
  std::vector<std::thread> workers;
  for (std::size_t i = working; i > 0; --i) workers.emplace_back(work);
  while (working > 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    const auto done = static_cast<double>(updates_done) / static_cast<double>(updates_total);
    if (done <= 0) continue;
    const double left = seconds_since(start) * (1 - done) / done;
    show_progress(cat(fixed(100 * done, 0), " %  run ", std::min(next.load(), jobs), " of ", jobs,
                      "  ", fixed(static_cast<double>(updates_done) / seconds_since(start), 0),
                      " updates/s  ", duration_text(left), " left"));
  }
  for (auto& worker : workers) worker.join();
  finish_progress();
  if (error) std::rethrow_exception(error);

  const auto untrained = make_objective(plan.modes.front().config.learner.model, plan.seed * 1000);
  comparison.untrained = probe(*untrained, plan.probe_train, plan.probe_val, plan.recipe);
  return comparison;
}

}  // namespace riffle
