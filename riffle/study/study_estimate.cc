#include "riffle/study/study_estimate.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include <sys/resource.h>

#if RIFFLE_CUDA
#include <c10/cuda/CUDACachingAllocator.h>
#endif

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/buffer/memory_plan.h"
#include "riffle/model/objective.h"
#include "riffle/stream/shapes/shape.h"
#include "riffle/study/measures.h"
#include "riffle/study/study_first.h"
#include "riffle/study/study_runner.h"
#include "riffle/train/device.h"
#include "riffle/train/learner.h"

namespace riffle {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kWarmUp = 2;
constexpr int kTimed = 3;
// An update of the paper's network takes a processor minutes; its time grows with the batch.
constexpr std::int64_t kMostOnCpu = 8;

// Every how many updates a checkpoint is written, and each is kept until the run is measured.
std::int64_t checkpoints_of(const Config& config) {
  const std::int64_t every = config.checkpoint.every;
  return every == 0 ? 1 : config.learner.train.max_updates / every + 1;
}

std::uint64_t samples_taken(const Config& config, std::int64_t capacity) {
  const auto& train = config.learner.train;
  const std::int64_t batches = train.max_updates / config.learner.updates_per_batch();
  return static_cast<std::uint64_t>(capacity + batches * train.samples_per_stream_batch());
}

// What earlier measurements left with LibTorch would count as taken, or as free for the next one.
void give_back_memory([[maybe_unused]] at::Device device) {
#if RIFFLE_CUDA
  if (device.is_cuda()) c10::cuda::CUDACachingAllocator::emptyCache();
#endif
}

// Of the windows that are put into a new order, what the shapes do not hold in memory
// (shapes/reorder.h).
std::uint64_t spooled_bytes(const Config& config, std::uint64_t samples) {
  const auto size = static_cast<std::uint64_t>(config.learner.stored_size());
  std::uint64_t most = 0;
  for (Uri& shape : parse_shapes(config.shapes)) {
    if (shape.scheme() != "shuffle" && shape.scheme() != "decorrelate") continue;
    const auto window = shape.get_integer("window", 1 << 18, 2, std::int64_t{1} << 32);
    const auto memory = shape.get_integer("memory", 1024, 0, 1 << 24);
    const std::uint64_t held = static_cast<std::uint64_t>(memory) << 20;
    const std::uint64_t all =
        std::min(static_cast<std::uint64_t>(window), samples) * 3 * size * size;
    most += all - std::min(all, held);
  }
  return most;
}

// A share that is valid for a large batch may be no sample of a small one, or leave it too few for
// batch norm.
void make_small(TrainConfig& train) {
  if (train.batch <= kMostOnCpu) return;
  train.batch = kMostOnCpu;
  if (train.fresh == 0) return;
  const std::int64_t most = std::min(train.batch - 2, train.samples_per_stream_batch());
  const std::int64_t fresh = std::clamp<std::int64_t>(train.fresh_samples(), 1, most);
  train.fresh = static_cast<double>(fresh) / static_cast<double>(train.batch);
}

}  // namespace

UpdateCost measure_update(const Config& config) {
  LearnerConfig learner_config = config.learner;
  auto& train = learner_config.train;
  const auto batch = static_cast<double>(train.batch);
  if (learner_config.device == "cpu") make_small(train);
  // Generating pictures takes longer than an update of a GPU. So there is one stream batch for all
  // of them, and always a buffer: without one, each update would take its own.
  train.updates = train.max_updates = kWarmUp + kTimed;
  if (learner_config.buffer.is_none()) learner_config.buffer.policy = "fifo";
  train.clock = ClockKind::lockstep;
  train.stream_batch = std::min(train.stream_batch, train.batch);
  // With train.fresh the newest stream batch is not drawn from.
  learner_config.buffer.capacity =
      std::to_string(2 * train.batch + train.samples_per_stream_batch());
  const auto stream = open_stream(cat("synthetic:?size=", learner_config.stored_size()));
  const at::Device device = open_device(learner_config.device);
  give_back_memory(device);
  const std::uint64_t free_before = available_memory(device).device;
  Learner learner(learner_config, *stream);
  for (int i = 0; i < kWarmUp; ++i) learner.advance();
  const auto start = Clock::now();
  for (int i = 0; i < kTimed; ++i) learner.advance();
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count() / kTimed;
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const std::uint64_t free_after = available_memory(device).device;
  return {.seconds = seconds * batch / static_cast<double>(train.batch),
          .host_bytes = static_cast<std::uint64_t>(used.ru_maxrss) * 1024,
          .device_bytes = free_before - std::min(free_before, free_after)};
}

RunNeeds needs_of(const Config& config, const UpdateCost& cost) {
  const LearnerConfig& learner = config.learner;
  const at::Device device = open_device(learner.device);
  const std::int64_t batch = learner.train.samples_per_stream_batch();
  const int size = static_cast<int>(learner.stored_size());
  const std::int64_t feature_dim = learner.model.projector_out;
  BufferConfig buffer = learner.buffer_config();
  give_back_memory(device);
  buffer.memory = choose_memory(buffer, batch, size, feature_dim, device, available_memory(device));
  const MemoryPlan plan = plan_memory(buffer, batch, size, feature_dim, device);
  std::uint64_t weights = 0;
  for (const auto& parameter : make_objective(learner.model, 0)->parameters()) {
    weights += parameter.nbytes();
  }
  const auto checkpoints = static_cast<std::uint64_t>(checkpoints_of(config));
  const auto capacity = static_cast<std::uint64_t>(plan.capacity);
  const std::uint64_t samples = samples_taken(config, plan.capacity);
  const std::uint64_t pictures = std::min(checkpoints * capacity, samples);
  return {.seconds = cost.seconds * static_cast<double>(learner.train.max_updates),
          .host_bytes = cost.host_bytes + plan.on_host(),
          .device_bytes = cost.device_bytes + plan.on_device(),
          // Weights with their momenta, tracked features, pictures.
          .disk_bytes = checkpoints * (2 * weights + plan.features) +
                        pictures * (plan.pictures / std::max<std::uint64_t>(1, capacity)),
          .temporary_bytes = spooled_bytes(config, samples)};
}

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
      per_update = measure_update(estimate.runs.front().run.config).seconds;
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
