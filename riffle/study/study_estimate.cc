#include "riffle/study/study_estimate.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/study/measures.h"
#include "riffle/study/study_first.h"
#include "riffle/study/study_runner.h"
#include "riffle/train/learner.h"

namespace riffle {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kWarmUp = 2;
constexpr int kTimed = 3;
// An update of the paper's network takes a processor minutes; its time grows with the batch.
constexpr std::int64_t kMostOnCpu = 8;

// Seconds of one update of this configuration.
double timed_update(const Config& config) {
  LearnerConfig learner_config = config.learner;
  auto& train = learner_config.train;
  const auto batch = static_cast<double>(train.batch);
  if (learner_config.device == "cpu") train.batch = std::min(train.batch, kMostOnCpu);
  train.updates = 1;
  train.max_updates = kWarmUp + kTimed;
  train.clock = ClockKind::lockstep;
  learner_config.buffer.capacity = std::to_string(2 * train.batch);
  const auto stream = open_stream(cat("synthetic:?size=", learner_config.stored_size()));
  Learner learner(learner_config, *stream);
  for (int i = 0; i < kWarmUp; ++i) learner.advance();
  const auto start = Clock::now();
  for (int i = 0; i < kTimed; ++i) learner.advance();
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count() / kTimed;
  return seconds * batch / static_cast<double>(train.batch);
}

}  // namespace

double StudyEstimate::total() const {
  double sum = 0;
  for (const auto& run : runs) sum += run.seconds;
  return sum;
}

StudyEstimate estimate_study(const Study& study, const std::filesystem::path& out,
                             const RunChoice& choice) {
  StudyEstimate estimate;
  std::vector<double> finished;
  for (auto& run : expand(study)) {
    const auto result = finished_result(out, study, run);
    if (result) finished.push_back(result->values.at("seconds") / result->values.at("updates"));
    if (is_chosen(choice, run)) {
      estimate.runs.push_back({std::move(run), result.has_value(), 0});
    }
  }
  const auto starts_from_first = [](const RunEstimate& run) { return !run.done && run.run.first; };
  const auto started = std::ranges::find_if(estimate.runs, starts_from_first);
  if (started != estimate.runs.end() && !is_first_done(out)) {
    StudyRun first;
    first.slug = "first";
    first.config = *started->run.first;
    estimate.runs.insert(estimate.runs.begin(), {std::move(first), false, 0});
  }
  double per_update = mean_and_spread(finished).mean;
  if (std::isfinite(per_update)) {
    estimate.basis = cat("the speed of ", finished.size(), " runs that are done");
  } else {
    try {
      per_update = timed_update(estimate.runs.front().run.config);
      estimate.basis = cat(kTimed, " updates of the first run, on generated pictures");
    } catch (const Error& error) {
      estimate.basis = cat("nothing: ", error.what());
    }
  }
  for (auto& run : estimate.runs) {
    if (run.done) continue;
    run.seconds = per_update * static_cast<double>(run.run.config.learner.train.max_updates);
  }
  return estimate;
}

}  // namespace riffle
