#include "riffle/run/presets.h"

#include "riffle/base/error.h"
#include "riffle/base/text.h"

namespace riffle {

const std::vector<Preset>& presets() {
  // docs/methods.md has the figures behind each.
  static const std::vector<Preset> all = {
      {"stream",
       "learns most from a stream of clips, as far as it was measured",
       {{"model.objective", "simclr"},
        {"model.average", "0.999"},
        {"buffer.policy", "merge"},
        {"buffer.features", "arrival"},
        {"buffer.weight_limit", "16"},
        {"buffer.merge_reach", "0.5"}}},
      {"paper",
       "SimSiam and MinRed as the paper has them, with the heads of its released ResNet-18",
       {{"model.objective", "simsiam"},
        {"model.projector_out", "512"},
        {"model.predictor_hidden", "128"},
        {"train.fixed_predictor_lr", "true"},
        {"buffer.policy", "minred"},
        {"buffer.features", "draw"},
        {"buffer.tie", "older"},
        {"train.schedule", "cosine"}}},
  };
  return all;
}

const Preset& find_preset(const std::string& name) {
  std::vector<std::string> names;
  for (const Preset& preset : presets()) {
    if (preset.name == name) return preset;
    names.push_back(preset.name);
  }
  throw Error(unknown_name("preset", name, names));
}

std::string presets_help() {
  std::vector<std::string> lines;
  for (const Preset& preset : presets()) {
    std::vector<std::string> values;
    for (const auto& [key, value] : preset.values) values.push_back(cat(key, '=', value));
    lines.push_back(cat(preset.name, ": ", preset.about, " (", join(values, ", "), ")"));
  }
  return join(lines, "; ");
}

}  // namespace riffle
