#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "apps/riffle/bench_peers.h"
#include "apps/riffle/bench_turns.h"
#include "apps/riffle/commands.h"
#include "apps/riffle/print.h"
#include <nlohmann/json.hpp>
#include <torch/cuda.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "riffle/base/error.h"
#include "riffle/base/fields.h"
#include "riffle/base/log.h"
#include "riffle/base/median.h"
#include "riffle/bench/ceilings.h"
#include "riffle/bench/step_bench.h"
#include "riffle/model/objective.h"
#include "riffle/train/profile.h"

namespace riffle {
namespace {

constexpr const char* kAll = "all";

struct StepOptions : BenchTurns {
  std::string objective = "simsiam";
  std::string arch = "resnet18";
  std::string stem = "small";
  std::int64_t width = 64;
  std::int64_t projector_hidden = 0;
  std::int64_t projector_out = 2048;
  std::int64_t predictor_hidden = 512;
  std::int64_t size = 32;
  std::int64_t batch = 64;
  std::string device = "cpu";
  int threads = 0;
  bool profile = false;
  bool peers = true;

  ModelConfig model() const {
    ModelConfig config;
    Fields fields;
    config.describe(fields);
    fields.set("model.objective", objective);
    fields.set("model.arch", arch);
    fields.set("model.stem", stem);
    config.width = width;
    config.projector_hidden = projector_hidden;
    config.projector_out = projector_out;
    config.predictor_hidden = predictor_hidden;
    return config;
  }
};

// Measures the step of one method. `ceilings`: measured with the first; peaks of memory are told of
// that one alone, since later ones cannot be told from it.
void measure_step(const StepOptions& options, std::optional<Ceilings>& ceilings) {
  StepBench bench(options.model(), options.batch, options.size, torch::Device(options.device));
  constexpr double kWarmUpSeconds = 0.5;
  bench.round(kWarmUpSeconds);
  if (options.profile) {
    Profile profile{torch::Device(options.device)};
    const auto round = bench.round(options.seconds);
    const auto parts = profile.finish(round.steps);
    print_lines(profile_table("part", parts));
    for (const ProfilePart& part : parts) {
      for (const std::string& name : part.first) print_line(cat(part.name, ": ", name));
    }
    return;
  }
  const StepShape shape{.model = options.model(),
                        .size = options.size,
                        .batch = options.batch,
                        .device = options.device,
                        .threads = options.threads};
  auto peers = options.peers ? StepPeers(shape) : StepPeers();
  std::vector<double> ours;
  for (int round = 0; round < options.rounds; ++round) {
    show_progress(cat("round ", round + 1, " of ", options.rounds));
    ours.push_back(bench.round(options.seconds).images_per_s);
    peers.round(options.seconds, ours.back());
  }
  finish_progress();

  const bool cuda = options.device == "cuda";
  const double rate = median(ours);
  nlohmann::ordered_json result;
  result["objective"] = options.objective;
  result["images_per_s"] = rate;
  result["ms_per_update"] = 1e3 * static_cast<double>(options.batch) / rate;
  if (!ceilings) {
    result["peak_bytes"] = peak_bytes(options.device);  // before the ceilings take their share
    ceilings = measure_ceilings(torch::Device(options.device));
  }
  const StepCost cost = step_cost(options.model(), options.size, cuda ? 2 : 4);
  result["arithmetic_share"] = rate * cost.operations / ceilings->operations_per_s;
  result["bandwidth_share"] = rate * cost.bytes / ceilings->bytes_per_s;
  peers.report(result);
  if (options.json) {
    print_json_line(result);
    return;
  }
  const auto percent = [&result](const char* key) {
    return cat(fixed(100 * result[key].get<double>(), 0), " %");
  };
  print_beside_peers(result, cat("  ", fixed(result["ms_per_update"], 2), " ms an update, ",
                                 percent("arithmetic_share"), " of the arithmetic and ",
                                 percent("bandwidth_share"), " of the bandwidth of ",
                                 cuda ? "the GPU" : "this CPU"));
}

void run(StepOptions options) {
  if (options.threads == 0) options.threads = static_cast<int>(std::thread::hardware_concurrency());
  if (options.device == "cuda" && !torch::cuda::is_available()) {
    throw Error("--device cuda: no CUDA device is available");
  }
  torch::set_num_threads(options.threads);
  std::optional<Ceilings> ceilings;
  if (options.objective != kAll) {
    measure_step(options, ceilings);
    return;
  }
  for (const std::string& name : objective_names()) {
    options.objective = name;
    if (!options.json) print_line(name);
    measure_step(options, ceilings);
  }
}

}  // namespace

void add_bench_step(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand(
      "step",
      "One training step (forward, backward, SGD; on a GPU the views too), beside Python torch");
  const auto options = std::make_shared<StepOptions>();
  const auto positive = CLI::Range(std::int64_t{1}, std::int64_t{1} << 20);
  command
      ->add_option(
          "--objective", options->objective,
          cat("The method: ", join(objective_names(), ", "), "; ", kAll, ": each of them in turn"))
      ->capture_default_str();
  command->add_option("--arch", options->arch, "resnet10, resnet18 or resnet50")
      ->capture_default_str();
  command->add_option("--stem", options->stem, "standard, small or stride2")->capture_default_str();
  command->add_option("--width", options->width, "Channels of the first stage")
      ->check(positive)
      ->capture_default_str();
  command
      ->add_option("--projector-hidden", options->projector_hidden,
                   "Hidden width of the projector; 0: the encoder's width")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 20))
      ->capture_default_str();
  command->add_option("--projector-out", options->projector_out, "Width of the features")
      ->check(positive)
      ->capture_default_str();
  command
      ->add_option("--predictor-hidden", options->predictor_hidden, "Hidden width of the predictor")
      ->check(positive)
      ->capture_default_str();
  command->add_option("--size", options->size, "Pixels a side")
      ->check(positive)
      ->capture_default_str();
  command->add_option("--batch", options->batch, "Pictures per update, each seen in two views")
      ->check(CLI::Range(std::int64_t{2}, std::int64_t{1} << 20))
      ->capture_default_str();
  command->add_option("--device", options->device, "cpu or cuda")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  command->add_option("--threads", options->threads, "CPU threads; 0: one per core")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str();
  options->add_to(*command);
  command->add_flag("--profile", options->profile,
                    "Show where the time of an update goes instead of comparing");
  command->add_flag("!--no-peers", options->peers, "Leave Python torch out");
  command->footer(
      "Example, the demo's model on two threads:\n"
      "  riffle bench step --arch resnet10 --stem stride2 --width 16 --projector-out 128 "
      "--predictor-hidden 32 --threads 2\n"
      "Example, every method at 224 px on a GPU:\n"
      "  riffle bench step --objective all --device cuda --stem standard --size 224 --batch 256");
  command->callback([options] { run(*options); });
}

}  // namespace riffle
