#include "riffle/run/checkpoint.h"

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/model/safetensors.h"

namespace riffle {
namespace {

constexpr const char* kNetwork = "network.";
constexpr const char* kMomentum = "momentum.";
constexpr const char* kVersion = "1";

}  // namespace

void save_checkpoint(const std::filesystem::path& path, Learner& learner, std::int64_t update) {
  const LearnerWeights weights = learner.weights();
  NamedTensors tensors;
  for (const auto& [name, tensor] : weights.network) tensors.emplace_back(kNetwork + name, tensor);
  for (const auto& [name, tensor] : weights.momenta) tensors.emplace_back(kMomentum + name, tensor);
  write_safetensors(path, tensors,
                    {{"riffle_checkpoint", kVersion},
                     {"update", std::to_string(update)},
                     {"samples_seen", std::to_string(learner.samples_seen())}});
}

std::shared_ptr<Objective> load_objective(const Config& config) {
  return make_simsiam(config.learner.model, config.learner.seed);
}

std::shared_ptr<Objective> load_objective(const Config& config,
                                          const std::filesystem::path& checkpoint) {
  const auto file = read_safetensors(checkpoint);
  const auto version = file.metadata.find("riffle_checkpoint");
  if (version == file.metadata.end() || version->second != kVersion) {
    throw Error(cat(checkpoint.string(), " is no checkpoint of this version of riffle"));
  }
  NamedTensors network;
  for (const auto& [name, tensor] : file.tensors) {
    if (name.starts_with(kNetwork))
      network.emplace_back(name.substr(std::string_view(kNetwork).size()), tensor);
  }
  auto objective = load_objective(config);
  try {
    load_state(*objective, network);
  } catch (const Error& error) {
    throw Error(cat(checkpoint.string(), ": ", error.what()));
  }
  return objective;
}

}  // namespace riffle
