#include "riffle/run/model_source.h"

#include <algorithm>
#include <filesystem>

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/model/encoder_weights.h"
#include "riffle/model/vision_transformer.h"
#include "riffle/run/checkpoint.h"
#include "riffle/run/run_folder.h"
#include "riffle/tensors/torch_file.h"

namespace riffle {
namespace {

// What these networks are mostly used with, in px; whole patches of 14 and of 16 fill it.
constexpr std::int64_t kTransformerSize = 224;

template <typename Source>
EncoderInput chosen_input(const Source& source, std::int64_t asked) {
  if (asked > 0) return static_cast<int>(asked);
  if (source.size < 1) {
    throw Error(cat(source.file, " does not say the size of its pictures; give --size"));
  }
  return {static_cast<int>(source.resize), static_cast<int>(source.size)};
}

std::filesystem::path newest_state(const RunFolder& folder) {
  const auto names = folder.checkpoint_names();
  if (!names.empty()) return folder.state_file(names.back());
  // Version 1 had no manifests.
  if (const auto state = folder.latest_checkpoint()) return *state;
  throw Error(cat(folder.path().string(), " has no checkpoint yet"));
}

ModelSource open_run(const std::string& run, const std::string& checkpoint) {
  const auto folder = RunFolder::open(run);
  const Config config = folder.config();
  const auto newest = newest_state(folder);
  const auto file = checkpoint.empty() ? newest : folder.find_checkpoint(checkpoint);
  const EncoderInput input = evaluation_input(config);
  return {.file = file.string(),
          .objective = load_objective(config, file),
          .model = config.learner.model,
          .seed = config.learner.seed,
          .size = input.crop,
          .resize = input.resize,
          .device = config.learner.device};
}

ModelSource open_weights(const std::string& path) {
  const EncoderWeights weights = read_encoder(path);
  try {
    return {.file = path,
            .objective = make_encoder(weights),
            .model = weights.model,
            .size = weights.size};
  } catch (const Error& error) {
    throw Error(cat(path, ": ", error.what()));
  }
}

}  // namespace

EncoderInput evaluation_input(const Config& config) {
  const auto stored = static_cast<int>(config.learner.stored_size());
  const auto view = static_cast<int>(config.learner.augment.size);
  return stored <= view ? stored : EncoderInput(std::min(stored, view * 256 / 224), view);
}

EncoderInput ModelSource::picture_size(std::int64_t asked) const {
  return chosen_input(*this, asked);
}

EncoderInput EncoderSource::picture_size(std::int64_t asked) const {
  return chosen_input(*this, asked);
}

EncoderSource open_encoder(const std::string& from, const std::string& checkpoint) {
  if (std::filesystem::is_regular_file(from)) {
    const auto [weights, metadata] = read_tensor_file(from);
    // riffle's own files say what they hold.
    if (VisionTransformer::is_one(weights) && !metadata.contains("arch")) {
      if (!checkpoint.empty()) throw Error(cat(from, " has no checkpoints"));
      return {.file = from,
              .encoder = make_vision_transformer(weights, from),
              .size = kTransformerSize};
    }
  }
  const ModelSource source = open_model(from, checkpoint);
  return {source.file, source.objective, source.size, source.resize, source.device};
}

ModelSource open_model(const std::string& from, const std::string& checkpoint) {
  if (!std::filesystem::is_regular_file(from)) return open_run(from, checkpoint);
  if (!checkpoint.empty()) throw Error(cat(from, " is not a run folder: it has no checkpoints"));
  return open_weights(from);
}

}  // namespace riffle
