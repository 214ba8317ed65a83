#include "riffle/run/checkpoint_config.h"

#include <set>

#include "riffle/base/error.h"
#include "riffle/base/text.h"

namespace riffle {
namespace {

// All but where the first weights came from.
std::set<std::string> network_keys() {
  Config config;
  Fields fields;
  config.learner.model.describe(fields);
  config.learner.augment.describe(fields);
  std::set<std::string> keys = {"stream.size"};
  for (const auto& field : fields.all()) keys.insert(field.key);
  keys.erase("model.init");
  return keys;
}

}  // namespace

std::vector<ChangedKey> changed_keys(Config config, const std::string& made_with,
                                     const std::string& name) {
  if (made_with.empty()) return {};
  ConfigBuilder then;
  then.read_yaml_text(made_with, cat("the configuration in ", name));
  Config made = then.build();
  Fields fields, made_fields;
  config.describe(fields);
  made.describe(made_fields);
  std::vector<ChangedKey> changed;
  for (const auto& field : fields.all()) {
    const std::string before = made_fields.get(field.key);
    if (field.get() != before) changed.push_back({field.key, field.get(), before});
  }
  return changed;
}

std::string changed_config_text(const std::filesystem::path& run, const std::string& name,
                                std::span<const ChangedKey> changed) {
  std::vector<std::string> texts;
  for (const auto& [key, now, before] : changed) {
    texts.push_back(cat(key, " is '", now, "', was '", before, "'"));
  }
  return cat(run.string(), ": config.yaml is not the one that ", name,
             " was made with: ", join(texts, "; "));
}

void require_same_network(const Config& config, const std::string& made_with,
                          const std::filesystem::path& state) {
  const std::string name = state.stem().string();
  const std::set<std::string> keys = network_keys();
  auto changed = changed_keys(config, made_with, name);
  std::erase_if(changed, [&](const ChangedKey& each) { return !keys.contains(each.key); });
  if (changed.empty()) return;
  const auto run = state.parent_path().parent_path();
  throw Error(cat(changed_config_text(run, name, changed), ". Undo the change"));
}

}  // namespace riffle
