#include <chrono>
#include <optional>

#include "apps/riffle/commands.h"
#include "apps/riffle/encoder_flags.h"
#include "apps/riffle/print.h"
#include <nlohmann/json.hpp>

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/eval/embedding.h"
#include "riffle/eval/feature_file.h"
#include "riffle/stream/stream.h"

namespace riffle {
namespace {

// As fit_square() does it.
constexpr const char* kResize = "short side, then the centre square";

struct EmbedOptions : EncoderFlags {
  std::string input;
  std::string shapes;
  std::string out;
  std::int64_t samples = 0;
  std::int64_t batch = 256;
  bool json = false;
};

void run_embed(const EmbedOptions& options) {
  Ranks& ranks = join_ranks();
  const EncoderSource source = options.open_any_encoder(ranks);
  const EncoderInput input = source.picture_size(options.size);
  source.encoder->to(options.device_for(source));
  const auto stream = open_stream(options.input, options.shapes);
  require_end(*stream, options.input, options.samples);
  // Rank 0's.
  std::optional<FeatureFile> file;
  if (ranks.first()) file.emplace(options.out, source.encoder->encoder_dim());
  const auto start = std::chrono::steady_clock::now();
  const auto write = [&](const EmbeddedBatch& read) {
    if (file) file->append(read.samples, read.features);
  };
  const std::int64_t samples =
      embed(*source.encoder, *stream, options.samples, input, options.batch, write, ranks);
  if (samples == 0) throw Error(cat(options.input, " has no samples"));
  if (!file) return;
  file->commit();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  const double per_s = static_cast<double>(samples) / seconds.count();
  if (options.json) {
    print_json_line(nlohmann::ordered_json{{"out", options.out},
                                           {"table", file->table().string()},
                                           {"samples", samples},
                                           {"features", source.encoder->encoder_dim()},
                                           {"size", input.crop},
                                           {"resize", kResize},
                                           {"images_per_s", per_s},
                                           {"checkpoint", source.file},
                                           {"skipped", stream->skipped()}});
  } else {
    print_line(cat(options.out, ": ", samples, " x ", source.encoder->encoder_dim(),
                   " features of pictures of ", input.crop, " px (", kResize, "), ",
                   fixed(per_s, 0), " images/s; the samples are listed in ",
                   file->table().string()));
  }
}

}  // namespace

void add_embed_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("embed", "Write the features of a stream to a file");
  const auto options = std::make_shared<EmbedOptions>();
  options->add_source_to(*command);
  command->add_option("--input", options->input, "The stream; labels are not needed")
      ->required()
      ->option_text("URI");
  command
      ->add_option("--shape", options->shapes,
                   "A shape around the stream; repeatable, innermost first")
      ->join(',')
      ->option_text("NAME:key=value,...");
  command
      ->add_option(
          "--out", options->out,
          "Matrix with one row per sample, .npy or .safetensors; a .csv beside it has index, "
          "clip, label and key of each row")
      ->required()
      ->option_text("FILE");
  command
      ->add_option("--samples", options->samples,
                   "Read at most N samples; 0: all (the stream must end)")
      ->check(CLI::Range(std::int64_t{0}, kMostSamples))
      ->option_text("N [0]");
  command->add_option("--batch", options->batch, "Pictures encoded at once")
      ->check(CLI::Range(1, 65536))
      ->option_text("N [256]");
  options->add_use_to(*command);
  command->add_flag("--json", options->json, "Print the result as one JSON object");
  command->footer(
      "Example, a short run and its features of a thousand pictures it has not seen:\n"
      "  riffle train --run runs/first --size 32 --stem small --width 16 --capacity 256 \\\n"
      "               --batch 32 --max-updates 20\n"
      "  riffle embed runs/first --input 'synthetic:?frames=1&seed=9' --samples 1000 \\\n"
      "               --out features.npy");
  command->callback([options] { run_embed(*options); });
}

}  // namespace riffle
