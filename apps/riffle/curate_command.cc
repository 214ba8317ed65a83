#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <thread>
#include <vector>

#include "apps/riffle/commands.h"
#include "apps/riffle/encoder_flags.h"
#include "apps/riffle/print.h"
#include <nlohmann/json.hpp>

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/curate/curate.h"
#include "riffle/run/config.h"

namespace riffle {
namespace {

struct CurateOptions : EncoderFlags {
  CurateConfig config;
  std::string out;
  std::vector<std::string> assignments;
  bool list = false;
  bool json = false;
};

void print(const CurateOptions& options, const CurateResult& result) {
  const double per_s = static_cast<double>(result.samples_now) / result.seconds;
  if (options.json) {
    print_json_line(nlohmann::ordered_json{{"out", options.out},
                                           {"finished", result.finished},
                                           {"samples", result.samples},
                                           {"kept", result.kept},
                                           {"alone", result.alone},
                                           {"seconds", result.seconds},
                                           {"images_per_s", per_s},
                                           {"selection_share", result.selection_s / result.seconds},
                                           {"finish_s", result.finish_s},
                                           {"skipped", result.skipped}});
    return;
  }
  if (!result.finished) {
    print_line(cat("stopped after ", result.samples, " pictures; the same command continues"));
    return;
  }
  print_line(cat(options.out, ": ", result.kept, " of ", result.samples, " pictures, ",
                 fixed(per_s, 0), " pictures/s; see ",
                 (result.folder / "selection.html").string()));
  if (options.config.alone == Alone::keep) return;
  print_line(cat(result.alone, " stood alone",
                 options.config.alone == Alone::drop ? " and were dropped" : ""));
}

// A folder, or "shards:FOLDER/part-%06d.tar".
void set_output(const std::string& out, CurateConfig& config) {
  constexpr std::string_view kShards = "shards:";
  config.out = out;
  if (!out.starts_with(kShards)) return;
  const std::filesystem::path pattern = out.substr(kShards.size());
  config.shards = pattern.filename().string();
  config.out = pattern.has_parent_path() ? pattern.parent_path() : ".";
  if (is_shard_pattern(config.shards)) return;
  throw Error(cat("'", out, "' is not a pattern for shards; write shards:FOLDER/part-%06d.tar"));
}

// A selection writes no checkpoints or metrics, and takes its stream from the command.
void require_effect(const std::string& assignment) {
  constexpr std::array<std::string_view, 8> kKeys = {
      "model.",  "align.",       "augment.",  "train.",
      "buffer.", "stream.size=", "run.seed=", "run.device="};
  const auto begins = [&](std::string_view key) { return assignment.starts_with(key); };
  if (std::ranges::any_of(kKeys, begins)) return;
  throw Error(cat("--set ", assignment, " does nothing here: only keys of model, align, augment, ",
                  "train and buffer do, and stream.size, run.seed and run.device"));
}

// Returns what an encoder that learns on the way is and does, unless --set says otherwise.
LearnerConfig learning_config(const CurateOptions& options) {
  constexpr std::int64_t kSize = 64, kLargestSmall = 64, kMostBuffered = 4096;
  const std::int64_t size = options.size > 0 ? options.size : kSize;
  const std::int64_t batch = options.config.batch;
  ConfigBuilder builder;
  builder.set("augment.size", std::to_string(size));
  builder.set("model.stem", size <= kLargestSmall ? "small" : "standard");
  builder.set("train.batch", std::to_string(batch));
  // Full, and so learned from, before the first picture has to leave the selection.
  const std::int64_t buffered =
      std::clamp(options.config.keep, batch, std::max(batch, kMostBuffered));
  builder.set("buffer.capacity", std::to_string(buffered));
  builder.set("train.schedule", "constant");
  builder.set("train.max_updates", "0");
  if (!options.device.empty()) builder.set("run.device", options.device);
  for (const auto& assignment : options.assignments) {
    builder.set_assignment(assignment);
    require_effect(assignment);
  }
  LearnerConfig learner = builder.build().learner;
  // The last bits of what is learned depend on it.
  auto& threads = learner.train.threads;
  if (threads == 0) threads = std::max<std::int64_t>(1, std::thread::hardware_concurrency());
  return learner;
}

// Returns all that decides what is learned, in one line.
std::string learning_text(LearnerConfig learner) {
  Fields fields;
  learner.model.describe(fields);
  learner.augment.describe(fields);
  learner.train.describe(fields);
  learner.buffer.describe(fields);
  std::string text = cat("learned on the way with seed=", learner.seed);
  for (const auto& field : fields.all()) text += cat(' ', field.key, '=', field.get());
  return text;
}

CurateResult curate_learning(const CurateOptions& options, CurateConfig config) {
  if (launched_processes() > 1) {
    throw Error(cat("a network that learns on the way does so in one process, and this is one of ",
                    launched_processes(), "; give an --encoder, or start without mpirun or srun"));
  }
  if (config.near >= 0) {
    throw Error("--near needs an --encoder: until one has learned, its distances mean nothing");
  }
  const LearnerConfig learner = learning_config(options);
  LearningEncoder encoder(learner);
  config.encoder = learning_text(learner);
  config.input = encoder.size();
  config.batch = encoder.batch();
  return curate(config, encoder);
}

CurateResult curate_with_encoder(const CurateOptions& options, CurateConfig config, Ranks& ranks) {
  if (!options.assignments.empty()) {
    throw Error("--set is for an encoder that learns on the way; leave out --encoder");
  }
  const EncoderSource source = options.open_any_encoder(ranks);
  source.encoder->to(options.device_for(source));
  config.encoder = source.file;
  config.input = source.picture_size(options.size);
  return curate(config, *source.encoder, ranks);
}

void run_curate(const CurateOptions& options) {
  CurateConfig config = options.config;
  set_output(options.out, config);
  config.pictures = !options.list;
  if (options.list && !config.shards.empty()) {
    throw Error(
        "--list writes no pictures, and --out shards: is for pictures; leave one of them out");
  }
  if (options.run.empty()) return print(options, curate_learning(options, config));
  Ranks& ranks = join_ranks();
  const CurateResult result = curate_with_encoder(options, config, ranks);
  if (ranks.first()) print(options, result);
}

// A word for each value. CLI11's own check takes their numbers, too, and lists both.
template <typename Value>
CLI::Validator one_of(const std::map<std::string, Value>& words) {
  const auto number_of = [words](std::string& text) -> std::string {
    const auto found = words.find(text);
    if (found == words.end()) {
      std::vector<std::string> names;
      for (const auto& [name, value] : words) names.push_back(name);
      return unknown_name("word", text, names);
    }
    text = std::to_string(static_cast<int>(found->second));
    return "";
  };
  return {number_of, "", ""};
}

void add_choice_flags(CLI::App& command, CurateConfig& config) {
  command.add_option("--keep", config.keep, "How many pictures to keep, at most")
      ->required()
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{100'000'000}))
      ->option_text("N");
  command
      .add_option("--per", config.per,
                  "Keep as many of each label or source (film, shard, folder) instead")
      ->transform(one_of<Quota>({{"label", Quota::label}, {"source", Quota::source}}))
      ->option_text("WHAT");
  command
      .add_option("--near", config.near,
                  "A picture at most this far from a kept one (cosine distance) is its repeat")
      ->check(CLI::Range(0.0, 2.0))
      ->option_text("D");
  command
      .add_option("--junk", config.alone,
                  "Pictures like no other, broken frames or something rare: keep, drop or report")
      ->transform(
          one_of<Alone>({{"keep", Alone::keep}, {"drop", Alone::drop}, {"report", Alone::report}}))
      ->option_text("WHAT [keep]");
  command.add_option("--samples", config.samples, "Read at most N pictures; 0: all")
      ->check(CLI::Range(std::int64_t{0}, kMostSamples))
      ->option_text("N [0]");
  command.add_option("--batch", config.batch, "Pictures encoded at once")
      ->check(CLI::Range(1, 65536))
      ->option_text("N [256]");
}

}  // namespace

void add_curate_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("curate", "Select the pictures of a stream that are worth keeping");
  const auto options = std::make_shared<CurateOptions>();
  CurateConfig& config = options->config;
  command->add_option("STREAM", config.stream, "The stream; labels are not needed")->required();
  command
      ->add_option("--shape", config.shapes,
                   "A shape around the stream; repeatable, innermost first")
      ->join(',')
      ->option_text("NAME:key=value,...");
  command
      ->add_option("--encoder", options->run,
                   "What pictures are compared by: a run folder, or a safetensors or .pth file; "
                   "default: a network that learns on the way")
      ->option_text("RUN");
  command
      ->add_option("--set", options->assignments,
                   "Without --encoder: a key of the network that learns, such as "
                   "model.arch=resnet10; repeatable (riffle config lists them)")
      ->option_text("KEY=VALUE");
  command
      ->add_option(
          "--out", options->out,
          "A new folder, or one of an interrupted selection; shards:FOLDER/part-%06d.tar for "
          "tar shards in it")
      ->required()
      ->option_text("DIR");
  add_choice_flags(*command, config);
  command->add_option("--shard-size", config.shard_size, "Pictures in a tar shard, at most")
      ->check(CLI::Range(1, 100'000'000))
      ->option_text("N [10000]");
  command
      ->add_option("--frames", config.encoding,
                   "How frames of films and pictures without a file are written: jpeg or png")
      ->transform(one_of<Encoding>({{"jpeg", Encoding::jpeg}, {"png", Encoding::png}}))
      ->option_text("WHAT [jpeg]");
  command->add_flag("--list", options->list, "Write no pictures, only selection.csv");
  command->add_flag("--assignments", config.assignments,
                    "Also write which kept picture each other one repeats");
  options->add_use_to(*command);
  command->add_flag("--json", options->json, "Print the result as one JSON object");
  command->footer(
      "One pass, in memory for N pictures' features. Stopped by Ctrl-C or a kill, the same "
      "command\n"
      "continues and ends with the same selection. With an --encoder, mpirun -n 4 riffle curate "
      "...\n"
      "shares the work between processes. See docs/curate.md.\n\n"
      "Examples\n"
      "  The ten thousand frames of an archive worth a look:\n"
      "    riffle curate 'video:archive/*.mp4?fps=2' --keep 10000 --encoder runs/camera \\\n"
      "                  --out selection\n"
      "  A crawl without near-duplicates, and who repeats whom:\n"
      "    riffle curate 'shards:crawl-*.tar' --keep 100000 --near 0.05 --assignments \\\n"
      "                  --encoder runs/crawl --out 'shards:clean/part-%06d.tar'");
  command->callback([options] { run_curate(*options); });
}

}  // namespace riffle
