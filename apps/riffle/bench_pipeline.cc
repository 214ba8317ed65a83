#include <memory>
#include <thread>
#include <vector>

#include "apps/riffle/bench_peers.h"
#include "apps/riffle/bench_turns.h"
#include "apps/riffle/commands.h"
#include "apps/riffle/config_flags.h"
#include "apps/riffle/print.h"
#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

#include "riffle/base/clock.h"
#include "riffle/base/error.h"
#include "riffle/base/log.h"
#include "riffle/base/median.h"
#include "riffle/bench/step_bench.h"
#include "riffle/stream/stream.h"
#include "riffle/train/learner.h"

namespace riffle {
namespace {

const std::vector<FlagForKey> kPipelineFlags = {
    {"--stream", "stream.uri"},        {"--shape", "stream.shapes", true},
    {"--buffer", "buffer.policy"},     {"--capacity", "buffer.capacity"},
    {"--features", "buffer.features"}, {"--updates", "train.updates"},
    {"--batch", "train.batch"},        {"--size", "augment.size"},
    {"--arch", "model.arch"},          {"--stem", "model.stem"},
    {"--width", "model.width"},        {"--device", "run.device"},
    {"--threads", "train.threads"},
};

struct PipelineOptions : BenchTurns {
  explicit PipelineOptions(CLI::App& command) : config(command, kPipelineFlags) { seconds = 3.0; }
  ConfigFlags config;
  bool peers = true;
};

// Makes updates for about `seconds`, in whole stream batches. Returns images/s.
double turn(Learner& learner, const LearnerConfig& config, double seconds) {
  const auto start = Clock::now();
  const std::int64_t before = learner.update();
  std::optional<UpdateReport> report;
  do {
    for (std::int64_t i = 0; i < config.updates_per_batch(); ++i) {
      report = learner.advance(/*measured=*/false);
      if (!report) throw Error("the stream has ended: give a longer one, or --shape loop");
    }
  } while (seconds_since(start) < seconds);
  learner.measure(*report);
  return static_cast<double>((learner.update() - before) * config.train.batch) /
         seconds_since(start);
}

void run(const PipelineOptions& options) {
  Config config = options.config.build();
  LearnerConfig& learning = config.learner;
  learning.train.max_updates = 0;
  learning.train.schedule = ScheduleKind::constant;
  auto& threads = learning.train.threads;
  if (threads == 0) threads = std::max<std::int64_t>(1, std::thread::hardware_concurrency());

  const auto stream = open_stream(config.stream, config.shapes);
  Learner learner(learning, *stream);
  do {
    show_progress(
        cat("filling the buffer: ", learner.buffer().size(), " of ", learner.buffer().capacity()));
  } while (learner.fill());
  StepBench step(learning.model, learning.train.batch, learning.augment.size,
                 open_device(learning.device));
  constexpr double kWarmUpSeconds = 1;
  turn(learner, learning, kWarmUpSeconds);
  step.round(kWarmUpSeconds);

  const StepShape shape{.model = learning.model,
                        .size = learning.augment.size,
                        .batch = learning.train.batch,
                        .device = learning.device,
                        .threads = static_cast<int>(threads)};
  auto peers = options.peers ? StepPeers(shape) : StepPeers();
  std::vector<double> ours, shares, steps;
  for (int round = 0; round < options.rounds; ++round) {
    show_progress(cat("round ", round + 1, " of ", options.rounds));
    ours.push_back(turn(learner, learning, options.seconds));
    steps.push_back(step.round(options.seconds).images_per_s);
    shares.push_back(ours.back() / steps.back());
    peers.round(options.seconds, ours.back());
  }
  finish_progress();

  nlohmann::ordered_json result;
  result["images_per_s"] = median(ours);
  result["step_images_per_s"] = median(steps);
  result["share_of_step"] = median(shares);
  result["peak_bytes"] = peak_bytes(learning.device);
  peers.report(result);
  if (options.json) {
    print_json_line(result);
    return;
  }
  print_beside_peers(result, cat("  ", fixed(100 * median(shares), 1), " % of the step alone, ",
                                 fixed(median(steps), 1), " images/s"));
}

}  // namespace

void add_bench_pipeline(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand(
      "pipeline",
      "Training end to end (stream, decoding, buffer, views, updates), beside the step alone and "
      "Python torch's step, which is given its views");
  const auto options = std::make_shared<PipelineOptions>(*command);
  options->add_to(*command);
  command->add_flag("!--no-peers", options->peers, "Leave Python torch out");
  command->footer(
      "Example, MinRed on a stream of 32 px frames:\n"
      "  riffle bench pipeline --stream 'synthetic:?frames=64' --size 32 --stem small --capacity "
      "4096 --batch 64");
  command->callback([options] { run(*options); });
}

}  // namespace riffle
