#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "apps/riffle/commands.h"
#include "apps/riffle/encoder_flags.h"
#include "apps/riffle/print.h"
#include <nlohmann/json.hpp>

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/model/encoder_weights.h"
#include "riffle/model/onnx.h"

namespace riffle {
namespace {

// Of files that other tools open as something else.
constexpr std::array<std::string_view, 10> kOtherEndings = {
    ".pt", ".pth", ".ckpt", ".bin", ".pkl", ".npy", ".npz", ".h5", ".pb", ".tflite"};

struct ExportOptions : EncoderFlags {
  std::string format;
  std::string out;
  bool json = false;
};

// Returns what --format says, or else the ending of the file.
std::string format_of(const ExportOptions& options) {
  const auto ending = std::filesystem::path(options.out).extension();
  const std::string by_ending = ending == ".onnx"          ? "onnx"
                                : ending == ".safetensors" ? "safetensors"
                                                           : "";
  if (options.format.empty() && by_ending.empty() && !ending.empty()) {
    throw Error(cat("--out ", options.out,
                    ": riffle writes .safetensors and .onnx files; name one ",
                    "of them, or say --format"));
  }
  if (options.format.empty()) return by_ending.empty() ? "safetensors" : by_ending;
  const bool of_others = std::ranges::find(kOtherEndings, ending.string()) != kOtherEndings.end();
  if (of_others || (!by_ending.empty() && by_ending != options.format)) {
    throw Error(cat("--format ", options.format, " contradicts --out ", options.out,
                    ": the ending ", ending.string(), " is of another format"));
  }
  return options.format;
}

void run_export(const ExportOptions& options) {
  const std::string format = format_of(options);
  const ModelSource source = options.open();
  const EncoderWeights weights = encoder_weights(*source.objective, source.model, source.size);
  if (format == "onnx") {
    write_onnx(options.out, weights);
  } else {
    write_encoder(options.out, weights);
  }
  const auto bytes = std::filesystem::file_size(options.out);
  const auto dim = source.objective->encoder_dim();
  if (options.json) {
    print_json_line(nlohmann::ordered_json{{"out", options.out},
                                           {"format", format},
                                           {"checkpoint", source.file},
                                           {"architecture", weights.architecture()},
                                           {"features", dim},
                                           {"bytes", bytes}});
  } else {
    print_line(
        cat(options.out, ": ", weights.architecture(), ", ", dim, " features, from ", source.file));
  }
}

}  // namespace

void add_export_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("export", "The encoder as a file that other tools open");
  const auto options = std::make_shared<ExportOptions>();
  options->add_source_to(*command);
  command
      ->add_option(
          "--format", options->format,
          "safetensors (torchvision's names) or onnx (any batch size); default: by the file's "
          "ending")
      ->check(CLI::IsMember({"safetensors", "onnx"}))
      ->option_text("FORMAT");
  command->add_option("--out", options->out, "File to write")->required()->option_text("FILE");
  command->add_flag("--json", options->json, "Print the result as one JSON object");
  command->footer(
      "Example, a short run and its encoder for ONNX Runtime:\n"
      "  riffle train --run runs/first --size 32 --stem small --width 16 --capacity 256 \\\n"
      "               --batch 32 --max-updates 20\n"
      "  riffle export runs/first --format onnx --out encoder.onnx");
  command->callback([options] { run_export(*options); });
}

}  // namespace riffle
