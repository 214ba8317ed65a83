#include <memory>
#include <vector>

#include "apps/riffle/bench_turns.h"
#include "apps/riffle/commands.h"
#include "apps/riffle/config_flags.h"
#include "apps/riffle/print.h"
#include <nlohmann/json.hpp>

#include "riffle/base/clock.h"
#include "riffle/base/error.h"
#include "riffle/base/log.h"
#include "riffle/base/median.h"
#include "riffle/bench/step_bench.h"
#include "riffle/dist/ranks.h"
#include "riffle/train/device.h"
#include "riffle/train/learner.h"
#include "riffle/train/shared_stream.h"

namespace riffle {
namespace {

const std::vector<FlagForKey> kRanksFlags = {
    {"--stream", "stream.uri"},        {"--buffer", "buffer.policy"},
    {"--capacity", "buffer.capacity"}, {"--updates", "train.updates"},
    {"--batch", "train.batch"},        {"--size", "augment.size"},
    {"--arch", "model.arch"},          {"--stem", "model.stem"},
    {"--width", "model.width"},        {"--objective", "model.objective"},
    {"--device", "run.device"},        {"--threads", "train.threads"},
};

struct RanksOptions : BenchTurns {
  explicit RanksOptions(CLI::App& command) : config(command, kRanksFlags) {}
  ConfigFlags config;
};

struct Turn {
  double images_per_s = 0;
  double update_ms = 0;
  // Of this rank, for each update.
  double bytes = 0;
};

// A learner with its stream, on all ranks or on one.
class RanksBench {
 public:
  RanksBench(const Config& config, std::int64_t batch, Ranks& ranks)
      : config_(config.learner),
        ranks_(ranks),
        source_(open_rank_stream(config.stream, config.shapes, ranks)) {
    config_.train.batch = batch;
    config_.train.max_updates = 0;
    config_.train.schedule = ScheduleKind::constant;
    if (config_.train.threads == 0) config_.train.threads = 1;
    learner_ = std::make_unique<Learner>(config_, *source_.stream, source_.sharing);
    while (learner_->fill()) {
    }
  }

  // Makes updates for about `seconds`, in whole stream batches.
  Turn turn(double seconds) {
    const auto start = Clock::now();
    const std::int64_t before = learner_->update();
    const std::uint64_t bytes = ranks_.bytes();
    do {
      for (std::int64_t i = 0; i < config_.updates_per_batch(); ++i) {
        if (!learner_->advance()) throw Error("the stream has ended: give a longer one");
      }
    } while (ranks_.any(ranks_.first() && seconds_since(start) < seconds));
    const double elapsed = seconds_since(start);
    const auto updates = static_cast<double>(learner_->update() - before);
    return {.images_per_s = updates * static_cast<double>(config_.train.batch) / elapsed,
            .update_ms = 1000 * elapsed / updates,
            .bytes = static_cast<double>(ranks_.bytes() - bytes) / updates};
  }

  std::int64_t parameters() {
    std::int64_t count = 0;
    for (const auto& parameter : learner_->objective().parameters()) count += parameter.numel();
    return count;
  }

 private:
  LearnerConfig config_;
  Ranks& ranks_;
  RankStream source_;
  std::unique_ptr<Learner> learner_;
};

// What taking part in an exchange costs: the recorded update of one rank that exchanges with nobody
// over NCCL, beside the update without ranks.
void run_one_rank_on_gpu(const RanksOptions& options, const LearnerConfig& config,
                         at::Device device) {
  const auto joined = ranks_on(device, one_rank());
  if (!joined) throw Error("one rank on a GPU is measured over NCCL, which this riffle lacks");
  const std::int64_t batch = config.train.batch;
  StepBench alone(config.model, batch, config.augment.size, device);
  StepBench together(config.model, batch, config.augment.size, device, *joined);
  alone.round(options.seconds / 2);
  together.round(options.seconds / 2);
  std::vector<double> alone_ms, together_ms, ratios;
  for (int round = 0; round < options.rounds; ++round) {
    show_progress(cat("round ", round + 1, " of ", options.rounds));
    // Each begins as often as the other.
    if (round % 2 == 0) alone_ms.push_back(1e3 * alone.round(options.seconds).seconds_per_step);
    together_ms.push_back(1e3 * together.round(options.seconds).seconds_per_step);
    if (round % 2 != 0) alone_ms.push_back(1e3 * alone.round(options.seconds).seconds_per_step);
    ratios.push_back(together_ms.back() / alone_ms.back());
  }
  finish_progress();
  if (options.json) {
    print_json_line({{"ranks", 1},
                     {"batch", batch},
                     {"update_ms", median(together_ms)},
                     {"without_ranks_ms", median(alone_ms)},
                     {"ratio", median(ratios)}});
    return;
  }
  print_line(cat("1 rank over NCCL, batch ", batch, ": ", fixed(median(together_ms), 3),
                 " ms an update, ", fixed(median(alone_ms), 3), " ms without ranks"));
  print_line(cat("  ", fixed(median(ratios), 4), " times that"));
}

void run_ranks(const RanksOptions& options) {
  Ranks& ranks = ranks_of_process();
  const Config config = options.config.build();
  const at::Device device = open_device(config.learner.device);
  if (ranks.alone() && device.is_cuda()) {
    run_one_rank_on_gpu(options, config.learner, device);
    return;
  }
  const std::int64_t batch = config.learner.train.batch;
  RanksBench together(config, batch, ranks);
  // What one rank does of an update, with nobody to wait for.
  std::unique_ptr<RanksBench> alone;
  if (ranks.first()) {
    alone = std::make_unique<RanksBench>(config, ranks.part_of(batch), one_rank());
    alone->turn(options.seconds / 2);
  }
  together.turn(options.seconds / 2);
  std::vector<double> rates, singles, shares, update_ms, bytes;
  for (int round = 0; round < options.rounds; ++round) {
    if (ranks.first()) {
      show_progress(cat("round ", round + 1, " of ", options.rounds));
      singles.push_back(alone->turn(options.seconds).images_per_s);
    }
    ranks.wait_for_all();
    const Turn turn = together.turn(options.seconds);
    rates.push_back(turn.images_per_s);
    update_ms.push_back(turn.update_ms);
    bytes.push_back(turn.bytes);
    if (ranks.first()) shares.push_back(rates.back() / (singles.back() * ranks.size()));
  }
  finish_progress();
  if (!ranks.first()) return;
  nlohmann::ordered_json result = {{"ranks", ranks.size()},
                                   {"batch", batch},
                                   {"images_per_s", median(rates)},
                                   {"update_ms", median(update_ms)},
                                   {"one_rank_images_per_s", median(singles)},
                                   {"share_of_ideal", median(shares)},
                                   {"bytes_per_update", median(bytes)},
                                   {"gradient_bytes", 4 * together.parameters()}};
  if (options.json) {
    print_json_line(result);
    return;
  }
  print_line(cat(ranks.size(), " ranks, batch ", batch, ": ", fixed(median(rates), 1),
                 " images/s, ", fixed(median(update_ms), 2), " ms an update"));
  print_line(
      cat("  one rank alone with its part of the batch: ", fixed(median(singles), 1), " images/s"));
  print_line(cat("  ", fixed(100 * median(shares), 1), " % of ", ranks.size(), " times that"));
  print_line(cat("  each rank hands over ", bytes_text(static_cast<std::uint64_t>(median(bytes))),
                 " an update, ", bytes_text(static_cast<std::uint64_t>(4 * together.parameters())),
                 " of it gradients"));
}

}  // namespace

void add_bench_ranks(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand(
      "ranks", "Training by several ranks, beside one rank with its part of the batch alone");
  const auto options = std::make_shared<RanksOptions>(*command);
  options->add_to(*command);
  command->footer(
      "Start it as the ranks to be measured:\n"
      "  mpirun -n 2 riffle bench ranks --stream 'synthetic:?frames=64' --size 32 --stem small \\\n"
      "               --capacity 1024 --batch 64 --threads 1\n"
      "One rank on a GPU is measured beside an update without ranks:\n"
      "  riffle bench ranks --device cuda --size 32 --stem small --batch 256");
  command->callback([options] { run_ranks(*options); });
}

}  // namespace riffle
