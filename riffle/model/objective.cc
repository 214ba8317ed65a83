#include "riffle/model/objective.h"

#include <ATen/ATen.h>

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/model/encoder_weights.h"
#include "riffle/model/simsiam.h"

namespace riffle {
namespace {

template <typename Method>
std::shared_ptr<Objective> make(const ModelConfig& config, std::uint64_t seed) {
  return std::make_shared<Method>(config, seed);
}

struct KnownObjective {
  std::string name;
  std::shared_ptr<Objective> (*make)(const ModelConfig& config, std::uint64_t seed);
};

const std::vector<KnownObjective>& known_objectives() {
  static const std::vector<KnownObjective> kObjectives = {
      {"simsiam", make<SimSiam>},
  };
  return kObjectives;
}

std::shared_ptr<Objective> make_untrained(const ModelConfig& config, std::uint64_t seed) {
  for (const auto& known : known_objectives()) {
    if (known.name == config.objective) return known.make(config, seed);
  }
  throw Error(unknown_name("model.objective", config.objective, objective_names()));
}

}  // namespace

std::vector<std::string> objective_names() {
  std::vector<std::string> names;
  for (const auto& known : known_objectives()) names.push_back(known.name);
  return names;
}

std::shared_ptr<Objective> make_objective(const ModelConfig& config, std::uint64_t seed) {
  auto objective = make_untrained(config, seed);
  if (config.init.empty()) return objective;
  try {
    load_encoder(*objective, config, read_encoder(config.init));
  } catch (const Error& error) {
    throw Error(cat("model.init=", config.init, ": ", error.what()), error.kind());
  }
  return objective;
}

}  // namespace riffle
