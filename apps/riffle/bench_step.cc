#include <algorithm>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "apps/riffle/commands.h"
#include "apps/riffle/peer_process.h"
#include <nlohmann/json.hpp>
#include <sys/resource.h>
#include <torch/torch.h>

#include "riffle/base/error.h"
#include "riffle/base/fields.h"
#include "riffle/base/log.h"
#include "riffle/train/profile.h"
#include "riffle/train/step_bench.h"

namespace riffle {
namespace {

struct Options {
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
  int rounds = 5;
  double seconds = 2.0;
  bool profile = false;
  bool json = false;

  ModelConfig model() const {
    ModelConfig config;
    Fields fields;
    config.describe(fields);
    fields.set("model.arch", arch);
    fields.set("model.stem", stem);
    config.width = width;
    config.projector_hidden = projector_hidden;
    config.projector_out = projector_out;
    config.predictor_hidden = predictor_hidden;
    return config;
  }
};

struct Peer {
  std::string name;
  std::unique_ptr<PeerProcess> process;
  std::vector<double> images_per_s;
  std::vector<double> ratios;   // ours to this peer's, round by round
  std::int64_t peak_bytes = 0;  // of the GPU
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2.0;
}

Peer start_peer(const Options& options, const std::vector<std::string>& flags) {
  std::vector<std::string> command = {
      RIFFLE_PYTHON, std::string(RIFFLE_SOURCE_DIR) + "/bench/simsiam_step.py", "--rounds"};
  const auto add = [&](const char* name, const auto& value) {
    command.push_back(name);
    command.push_back(cat(value));
  };
  add("--arch", options.arch);
  add("--stem", options.stem);
  add("--width", options.width);
  add("--projector-hidden", options.projector_hidden);
  add("--projector-out", options.projector_out);
  add("--predictor-hidden", options.predictor_hidden);
  add("--size", options.size);
  add("--batch", options.batch);
  add("--device", options.device);
  add("--threads", options.threads);
  command.insert(command.end(), flags.begin(), flags.end());
  Peer peer;
  peer.process = std::make_unique<PeerProcess>(command);
  peer.name = nlohmann::json::parse(peer.process->read_line()).at("name");
  return peer;
}

std::vector<Peer> start_peers(const Options& options) {
  std::vector<Peer> peers;
  if (std::string(RIFFLE_PYTHON).empty() || !std::filesystem::exists(RIFFLE_PYTHON)) {
    log_warning(
        "no Python with torch was found when riffle was built: there is no peer to measure");
    return peers;
  }
  using Flags = std::vector<std::string>;
  const std::vector<Flags> cpu = {{}, {"--channels-last"}};
  // The authors' setting, what is usual today, and the best that stock torch can do.
  const std::vector<Flags> cuda = {
      {"--tf32"}, {"--channels-last", "--bf16"}, {"--channels-last", "--bf16", "--compile"}};
  for (const Flags& flags : options.device == "cuda" ? cuda : cpu) {
    show_progress(cat("starting a peer: torch ", join(flags, " ")));
    peers.push_back(start_peer(options, flags));
  }
  return peers;
}

// The most memory held so far: of the GPU, or of this process, weights and code included.
std::int64_t peak_bytes(const std::string& device) {
  if (device == "cuda") return gpu_peak_bytes();
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

void run(Options options) {
  if (options.threads == 0) options.threads = static_cast<int>(std::thread::hardware_concurrency());
  if (options.device == "cuda" && !torch::cuda::is_available()) {
    throw Error("--device cuda: no CUDA device is available");
  }
  torch::set_num_threads(options.threads);
  StepBench bench(options.model(), options.batch, options.size, torch::Device(options.device));
  constexpr double kWarmUpSeconds = 0.5;
  bench.round(kWarmUpSeconds);
  if (options.profile) {
    Profile profile{torch::Device(options.device)};
    const auto round = bench.round(options.seconds);
    const auto parts = profile.finish(round.steps);
    std::cout << profile_table(parts);
    for (const ProfilePart& part : parts) {
      for (const std::string& name : part.first) std::cout << part.name << ": " << name << '\n';
    }
    return;
  }
  std::vector<Peer> peers = start_peers(options);

  std::vector<double> ours;
  for (int round = 0; round < options.rounds; ++round) {
    show_progress(cat("round ", round + 1, " of ", options.rounds));
    ours.push_back(bench.round(options.seconds).images_per_s);
    for (Peer& peer : peers) {
      peer.process->write_line(cat(options.seconds));
      const auto answer = nlohmann::json::parse(peer.process->read_line());
      const double rate = answer.at("images_per_s");
      peer.peak_bytes = answer.value("peak_bytes", std::int64_t{0});
      peer.images_per_s.push_back(rate);
      peer.ratios.push_back(ours.back() / rate);
    }
  }
  finish_progress();

  nlohmann::ordered_json result;
  result["images_per_s"] = median(ours);
  result["ms_per_update"] = 1e3 * static_cast<double>(options.batch) / median(ours);
  result["peak_bytes"] = peak_bytes(options.device);
  result["peers"] = nlohmann::ordered_json::array();
  // Rounds are compared with their neighbours in time, so that a change of the machine's load hits
  // both.
  double ratio_to_best = 0.0;
  for (const Peer& peer : peers) {
    const double ratio = median(peer.ratios);
    ratio_to_best = ratio_to_best == 0.0 ? ratio : std::min(ratio_to_best, ratio);
    result["peers"].push_back(
        {{"name", peer.name}, {"images_per_s", median(peer.images_per_s)}, {"ratio", ratio}});
    if (peer.peak_bytes > 0) result["peers"].back()["peak_bytes"] = peer.peak_bytes;
  }
  if (!peers.empty()) result["ratio_to_best_peer"] = ratio_to_best;
  if (options.json) {
    std::cout << result.dump() << '\n';
    return;
  }
  const auto line = [](const std::string& name, double rate, const std::string& rest) {
    std::cout << std::left << std::setw(24) << name << std::right << std::setw(10) << fixed(rate, 1)
              << " images/s" << rest << '\n';
  };
  line("riffle", result["images_per_s"],
       cat("  ", fixed(result["ms_per_update"], 2), " ms an update"));
  for (const auto& peer : result["peers"]) {
    line(peer["name"], peer["images_per_s"], cat("  riffle is ", fixed(peer["ratio"], 2), "x"));
  }
}

}  // namespace

void add_bench_step(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand(
      "step",
      "One training step (forward, backward, SGD; on a GPU the views too), beside Python torch");
  const auto options = std::make_shared<Options>();
  const auto positive = CLI::Range(std::int64_t{1}, std::int64_t{1} << 20);
  command->add_option("--arch", options->arch, "resnet10, resnet18 or resnet50")
      ->capture_default_str();
  command->add_option("--stem", options->stem, "standard, small or stride2")->capture_default_str();
  command->add_option("--width", options->width, "Channels of the first stage")
      ->check(positive)
      ->capture_default_str();
  command->add_option("--projector-hidden", options->projector_hidden, "0: the encoder's width")
      ->check(CLI::NonNegativeNumber)
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
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_option("--rounds", options->rounds, "Turns each program takes")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--seconds", options->seconds, "Length of a turn")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_flag("--profile", options->profile,
                    "Instead of comparing, say where the time of an update goes");
  command->add_flag("--json", options->json, "The result as one JSON object on standard output");
  command->footer(
      "Example, the demo's model on two threads:\n"
      "  riffle bench step --arch resnet10 --stem stride2 --width 16 --projector-out 128 "
      "--predictor-hidden 32 --threads 2");
  command->callback([options] { run(*options); });
}

}  // namespace riffle
