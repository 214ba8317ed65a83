#include <chrono>
#include <filesystem>
#include <optional>

#include "apps/riffle/commands.h"
#include "apps/riffle/encoder_flags.h"
#include "apps/riffle/print.h"
#include <ATen/Parallel.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "riffle/base/error.h"
#include "riffle/base/log.h"
#include "riffle/base/text.h"
#include "riffle/eval/probe.h"
#include "riffle/run/probe_record.h"
#include "riffle/run/run_folder.h"
#include "riffle/stream/stream.h"

namespace riffle {
namespace {

struct ProbeCommand : EncoderFlags {
  std::string train;
  std::string train_shapes;
  std::string val;
  std::string val_shapes;
  std::string recipe = "cached";
  std::int64_t samples = 0;
  bool background = false;
  bool trained_only = false;
  bool json = false;
};

LabelledSet labelled_set(const std::string& uri, const std::string& shapes, std::int64_t samples,
                         const EncoderInput& input, Ranks& ranks) {
  require_end(*open_stream(uri, shapes), uri, samples);
  return {[uri, shapes] { return open_stream(uri, shapes); }, samples, input,
          LabelledSet::kMostHeldBytes, ranks};
}

nlohmann::ordered_json accuracies(const ProbeResult& result) {
  return {{"linear_top1", result.linear_top1},
          {"linear_top5", result.linear_top5},
          {"knn_top1", result.knn_top1}};
}

// Keeps the result in the run, for its pages.
void record(const ProbeCommand& options, const ModelSource& source, const ProbeResult& result) {
  const auto set = [](const std::string& uri, const std::string& shapes) {
    return shapes.empty() ? uri : cat(uri, " as ", shapes);
  };
  const auto update = RunFolder::update_of(std::filesystem::path(source.file).stem().string());
  append_probe(
      RunFolder::open(options.run),
      {update.value_or(0), result.linear_top1, result.linear_top5, result.knn_top1, result.recipe,
       set(options.train, options.train_shapes), set(options.val, options.val_shapes)});
}

void print_row(const std::string& name, const ProbeResult& result) {
  print_line(cat(name, "  linear top-1 ", fixed(result.linear_top1, 1), " %  top-5 ",
                 fixed(result.linear_top5, 1), " %  k-NN ", fixed(result.knn_top1, 1), " %"));
}

void run_probe(const ProbeCommand& options) {
  const LinearRecipe recipe = linear_recipe(options.recipe);
  Ranks& ranks = join_ranks();
  if (options.background) {
    [[maybe_unused]] const int nice = ::nice(10);
    at::set_num_threads(1);
  }
  const ModelSource source = options.open(ranks);
  // What cannot be made is said before the hours that a probe may take.
  const auto untrained = options.trained_only ? nullptr : make_objective(source.model, source.seed);
  const at::Device device = options.device_for(source);
  const EncoderInput input = source.picture_size(options.size);
  auto train = labelled_set(options.train, options.train_shapes, options.samples, input, ranks);
  auto val = labelled_set(options.val, options.val_shapes, options.samples, input, ranks);
  if (ranks.first() && options.train == options.val && options.train_shapes == options.val_shapes) {
    log_warning(
        "--train and --val are the same set: the accuracies say what was remembered, not what "
        "was learned");
  }
  log_info(cat("probing ", source.file));

  const auto start = std::chrono::steady_clock::now();
  source.objective->to(device);
  const ProbeResult result = probe(*source.objective, train, val, recipe);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  if (ranks.first() && RunFolder::is_run(options.run)) record(options, source, result);
  std::optional<ProbeResult> baseline;
  if (untrained) {
    untrained->to(device);
    baseline = probe(*untrained, train, val, recipe);
  }
  if (!ranks.first()) return;
  if (options.json) {
    auto json = accuracies(result);
    json["recipe"] = result.recipe;
    if (baseline) json["untrained"] = accuracies(*baseline);
    json["checkpoint"] = source.file;
    json["seconds"] = seconds.count();
    print_json_line(json);
    return;
  }
  print_row("trained  ", result);
  if (baseline) print_row("untrained", *baseline);
  print_line(cat("recipe: ", result.recipe));
  print_line(cat("in ", fixed(seconds.count(), 1), " s"));
}

}  // namespace

void add_probe_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("probe", "Linear and k-NN accuracy of a run's frozen encoder");
  const auto options = std::make_shared<ProbeCommand>();
  options->add_source_to(*command);
  command->add_option("--train", options->train, "Labelled stream to fit the probes on")
      ->required()
      ->option_text("URI");
  command->add_option("--val", options->val, "Labelled stream to measure on")
      ->required()
      ->option_text("URI");
  command
      ->add_option("--train-shape", options->train_shapes,
                   "A shape around --train; repeatable, innermost first")
      ->join(',')
      ->option_text("NAME:key=value,...");
  command->add_option("--val-shape", options->val_shapes, "The same around --val")
      ->join(',')
      ->option_text("NAME:key=value,...");
  command
      ->add_option("--recipe", options->recipe,
                   "How the linear probe is trained: " + recipe_names())
      ->option_text("[cached]");
  options->add_use_to(*command);
  command
      ->add_option("--samples", options->samples,
                   "Read at most N samples of each stream; 0: all (the streams must end)")
      ->check(CLI::Range(std::int64_t{0}, kMostSamples))
      ->option_text("N [0]");
  // For probes along training.
  command->add_flag("--background", options->background, "One thread, at low priority")->group("");
  command->add_flag("--trained-only", options->trained_only,
                    "Leave out the untrained network, which is there to compare with");
  command->add_flag("--json", options->json, "Print the result as one JSON object");
  command->footer(
      "Example, on the embedded stream (two seeds, so no clip is in both):\n"
      "  riffle probe runs/first --train 'synthetic:?frames=1&seed=11&samples=2000' \\\n"
      "                          --val 'synthetic:?frames=1&seed=12&samples=1000'");
  command->callback([options] { run_probe(*options); });
}

}  // namespace riffle
