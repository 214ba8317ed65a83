#include <iomanip>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/riffle/commands.h"
#include "apps/riffle/print.h"
#include <ATen/Parallel.h>
#include <nlohmann/json.hpp>

#include "riffle/base/error.h"
#include "riffle/base/log.h"
#include "riffle/base/text.h"
#include "riffle/bench/minred_bench.h"

namespace riffle {
namespace {

// What is not given depends on the device: a CPU gets a size it can do in seconds.
struct BenchMinredOptions {
  std::string policy = "minred";
  std::string device = "cpu";
  std::vector<std::int64_t> capacities;
  std::optional<std::int64_t> dim;
  std::optional<std::int64_t> batch;
  std::int64_t updates = 5;
  std::string type;
  std::int64_t neighbours = 8;
  std::int64_t batches = 20;
  std::optional<std::int64_t> authors_batches;
  std::uint64_t seed = 0;
  int threads = 0;
  bool json = false;

  bool on_gpu() const { return device != "cpu"; }
  bool merges() const { return policy == "merge"; }
};

FeatureType parse_type(const std::string& name) {
  if (name == "float32") return FeatureType::float32;
  if (name == "float16") return FeatureType::float16;
  return FeatureType::bfloat16;
}

std::string type_of(const BenchMinredOptions& options) {
  if (!options.type.empty()) return options.type;
  return options.on_gpu() ? "float16" : "float32";
}

MinredBenchConfig config_of(const BenchMinredOptions& options, std::int64_t capacity) {
  MinredBenchConfig config;
  config.device = at::Device(options.device);
  config.capacity = capacity;
  config.dim = options.dim.value_or(options.on_gpu() ? 2048 : 256);
  config.batch = options.batch.value_or(options.on_gpu() ? 256 : 64);
  config.updates = options.updates;
  config.type = parse_type(type_of(options));
  config.neighbours = options.neighbours;
  config.batches = options.batches;
  config.authors_batches = options.authors_batches.value_or(options.on_gpu() ? 1 : 3);
  config.seed = options.seed;
  if (options.merges()) config.merge = MergeRule{};
  return config;
}

nlohmann::ordered_json as_json(const BenchMinredOptions& options, const MinredBenchConfig& config,
                               const MinredBenchResult& result) {
  nlohmann::ordered_json json = {
      {"policy", options.policy},
      {"device", options.device},
      {"capacity", config.capacity},
      {"dim", config.dim},
      {"batch", config.batch},
      {"updates", config.updates},
      {"type", type_of(options)},
      {"threads", at::get_num_threads()},
      {"per_stream_batch_ms", result.per_stream_batch_ms},
      {"per_step_ms", result.per_step_ms},
      {"take_ms", result.take_ms},
      {"authors_per_stream_batch_ms", nullptr},
      {"authors_per_step_ms", nullptr},
      {"ratio", nullptr},
      {"same_evictions", nullptr},
      {"peak_bytes", result.peak_bytes},
      {"rescanned_per_batch", result.rescanned_per_batch},
      {"largest_rounding", result.stats.largest_rounding},
      {"allowed_rounding", result.stats.allowed_rounding},
  };
  if (result.authors_skipped.empty()) {
    json["authors_per_stream_batch_ms"] = result.authors_per_stream_batch_ms;
    json["authors_per_step_ms"] = result.authors_per_step_ms;
    json["ratio"] = result.ratio;
    json["same_evictions"] = result.same_evictions;
    json["authors_peak_bytes"] = result.authors_peak_bytes;
  } else {
    json["authors_skipped"] = result.authors_skipped;
  }
  return json;
}

void print_head(const BenchMinredOptions& options) {
  const MinredBenchConfig config = config_of(options, 1);
  print_line(cat(options.policy, " on ", options.device, ", d = ", config.dim,
                 ", b = ", config.batch, ", K = ", config.updates, ", ", type_of(options),
                 ", medians in ms"));
  print_line(options.merges()
                 ? "capacity  per stream batch  per step  minred, batch  times minred  rescanned"
                   "  peak memory"
                 : "capacity  per stream batch  per step  authors, batch  authors, step   ratio"
                   "  same  peak memory");
}

std::string cell(const std::string& text, int width) { return cat(std::setw(width), text); }

// The policy `merge` beside MinRed over the same history, in one run.
void run_beside_minred(const BenchMinredOptions& options, const MinredBenchConfig& config) {
  MinredBenchConfig plain = config;
  plain.merge.reset();
  plain.authors_batches = 0;
  const MinredBenchResult minred = bench_minred(plain);
  const MinredBenchResult merge = bench_minred(config);
  const double times = merge.per_stream_batch_ms / minred.per_stream_batch_ms;
  finish_progress();
  if (options.json) {
    auto json = as_json(options, config, merge);
    json["minred_per_stream_batch_ms"] = minred.per_stream_batch_ms;
    json["times_minred"] = times;
    print_json_line(json);
    return;
  }
  print_line(cat(cell(cat(config.capacity), 8), cell(fixed(merge.per_stream_batch_ms, 2), 18),
                 cell(fixed(merge.per_step_ms, 3), 10),
                 cell(fixed(minred.per_stream_batch_ms, 2), 15), cell(fixed(times, 2), 14),
                 cell(fixed(merge.rescanned_per_batch, 1), 11),
                 cell(bytes_text(merge.peak_bytes), 13)));
}

void print_row(const MinredBenchConfig& config, const MinredBenchResult& result) {
  const bool authors = result.authors_skipped.empty();
  print_line(cat(cell(cat(config.capacity), 8), cell(fixed(result.per_stream_batch_ms, 2), 18),
                 cell(fixed(result.per_step_ms, 3), 10),
                 cell(authors ? fixed(result.authors_per_stream_batch_ms, 1) : "-", 16),
                 cell(authors ? fixed(result.authors_per_step_ms, 3) : "-", 15),
                 cell(authors ? fixed(result.ratio, 1) : "-", 8),
                 cell(authors ? (result.same_evictions ? "yes" : "NO") : "-", 6),
                 cell(bytes_text(result.peak_bytes), 13),
                 authors ? "" : cat("  authors' way skipped: ", result.authors_skipped)));
}

void run_bench_minred(const BenchMinredOptions& options) {
  if (options.threads > 0) at::set_num_threads(options.threads);
  std::vector<std::int64_t> capacities = options.capacities;
  if (capacities.empty()) {
    capacities = {4096, 16384, 65536, 262144};
    if (options.json) capacities = {options.on_gpu() ? 65536 : 4096};
    if (!options.json && !options.on_gpu()) capacities.resize(2);
  }
  if (options.json && capacities.size() > 1) {
    throw Error("--json gives the result of one size; give one --capacity");
  }
  if (!options.json) print_head(options);
  for (const std::int64_t capacity : capacities) {
    const MinredBenchConfig config = config_of(options, capacity);
    show_progress(cat("capacity ", capacity));
    if (options.merges()) {
      run_beside_minred(options, config);
      continue;
    }
    const MinredBenchResult result = bench_minred(config);
    finish_progress();
    if (options.json) {
      print_json_line(as_json(options, config, result));
    } else {
      print_row(config, result);
    }
  }
}

}  // namespace

void add_bench_minred(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand(
      "minred", "MinRed's choice of samples: our index beside the authors' full matrix");
  const auto options = std::make_shared<BenchMinredOptions>();
  command
      ->add_option("--policy", options->policy,
                   "minred beside the authors' way, or merge beside minred")
      ->check(CLI::IsMember({"minred", "merge"}))
      ->capture_default_str();
  command->add_option("--device", options->device, "cpu or cuda")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  command->add_option("--capacity", options->capacities,
                      "Samples in the buffer; several give a table (4K, 16K; on cuda up to 256K)");
  command->add_option("--dim", options->dim, "Width of the features (256; on cuda 2048)");
  command->add_option("--batch", options->batch, "Samples per stream batch (64; on cuda 256)");
  command->add_option("--updates", options->updates, "Updates per stream batch")
      ->capture_default_str();
  command->add_option("--type", options->type, "How features are stored (float32; on cuda float16)")
      ->check(CLI::IsMember({"float32", "float16", "bfloat16"}));
  command->add_option("--neighbours", options->neighbours, "Nearest rows remembered per row")
      ->capture_default_str();
  command->add_option("--batches", options->batches, "Stream batches measured")
      ->capture_default_str();
  command->add_option("--authors-batches", options->authors_batches,
                      "Stream batches that are also done the authors' way (3; on cuda 1; 0: none)");
  command->add_option("--seed", options->seed, "Seed of the history")->capture_default_str();
  command->add_option("--threads", options->threads, "CPU threads, for both ways (0: all)");
  command->add_flag("--json", options->json, "Print the result as one JSON object");
  command->footer("Example: riffle bench minred --device cuda --capacity 65536 --json");
  command->callback([options] { run_bench_minred(*options); });
}

}  // namespace riffle
