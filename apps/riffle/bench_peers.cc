#include "apps/riffle/bench_peers.h"

#include <algorithm>
#include <filesystem>
#include <iomanip>

#include "apps/riffle/print.h"
#include <sys/resource.h>

#include "riffle/base/fields.h"
#include "riffle/base/log.h"
#include "riffle/base/median.h"
#include "riffle/base/text.h"
#include "riffle/bench/step_bench.h"

namespace riffle {
namespace {

std::vector<std::string> command_of(const StepShape& shape, const std::vector<std::string>& flags) {
  // Without the allocator's setting that riffle chose for itself: a peer is what stock torch is.
  std::vector<std::string> command = {"/usr/bin/env",
                                      "-u",
                                      "PYTORCH_CUDA_ALLOC_CONF",
                                      RIFFLE_PYTHON,
                                      std::string(RIFFLE_SOURCE_DIR) + "/bench/training_step.py",
                                      "--rounds"};
  const auto add = [&](const char* name, const auto& value) {
    command.push_back(name);
    command.push_back(cat(value));
  };
  ModelConfig model = shape.model;
  Fields fields;
  model.describe(fields);
  add("--objective", model.objective);
  add("--arch", fields.get("model.arch"));
  add("--stem", fields.get("model.stem"));
  add("--width", model.width);
  add("--projector-hidden", model.projector_hidden);
  add("--projector-out", model.projector_out);
  add("--predictor-hidden", model.predictor_hidden);
  add("--size", shape.size);
  add("--batch", shape.batch);
  add("--device", shape.device);
  add("--threads", shape.threads);
  command.insert(command.end(), flags.begin(), flags.end());
  return command;
}

}  // namespace

StepPeers::StepPeers(const StepShape& shape) {
  if (std::string(RIFFLE_PYTHON).empty() || !std::filesystem::exists(RIFFLE_PYTHON)) {
    log_warning("riffle was built without a Python that has torch: no peer is measured");
    return;
  }
  using Flags = std::vector<std::string>;
  const std::vector<Flags> cpu = {{}, {"--channels-last"}};
  const std::vector<Flags> cuda = {
      {"--tf32"}, {"--channels-last", "--bf16"}, {"--channels-last", "--bf16", "--compile"}};
  for (const Flags& flags : shape.device == "cuda" ? cuda : cpu) {
    peers_.emplace_back().process = std::make_unique<ChildProcess>(command_of(shape, flags));
  }
  for (Peer& peer : peers_) {
    peer.name = nlohmann::json::parse(peer.process->read_line()).at("name");
    show_progress(cat("warming up: ", peer.name));
    peer.process->write_line("0");
    peer.process->read_line();
  }
}

void StepPeers::round(double seconds, double ours) {
  for (Peer& peer : peers_) {
    peer.process->write_line(cat(seconds));
    const auto answer = nlohmann::json::parse(peer.process->read_line());
    const double rate = answer.at("images_per_s");
    peer.peak_bytes = answer.value("peak_bytes", std::int64_t{0});
    peer.images_per_s.push_back(rate);
    peer.ratios.push_back(ours / rate);
  }
}

void StepPeers::report(nlohmann::ordered_json& result) const {
  result["peers"] = nlohmann::ordered_json::array();
  double ratio_to_best = 0.0;
  for (const Peer& peer : peers_) {
    const double ratio = median(peer.ratios);
    ratio_to_best = ratio_to_best == 0.0 ? ratio : std::min(ratio_to_best, ratio);
    result["peers"].push_back(
        {{"name", peer.name}, {"images_per_s", median(peer.images_per_s)}, {"ratio", ratio}});
    if (peer.peak_bytes > 0) result["peers"].back()["peak_bytes"] = peer.peak_bytes;
  }
  if (!peers_.empty()) result["ratio_to_best_peer"] = ratio_to_best;
}

void print_beside_peers(const nlohmann::ordered_json& result, const std::string& rest) {
  const auto line = [](const std::string& name, double rate, const std::string& more) {
    print_line(cat(std::left, std::setw(24), name, std::right, std::setw(10), fixed(rate, 1),
                   " images/s", more));
  };
  line("riffle", result["images_per_s"], rest);
  for (const auto& peer : result["peers"]) {
    line(peer["name"], peer["images_per_s"], cat("  riffle is ", fixed(peer["ratio"], 2), "x"));
  }
}

std::int64_t peak_bytes(const std::string& device) {
  if (device == "cuda") return gpu_peak_bytes();
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

}  // namespace riffle
