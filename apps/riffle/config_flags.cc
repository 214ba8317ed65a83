#include "apps/riffle/config_flags.h"

#include "riffle/base/text.h"
#include "riffle/buffer/policy.h"
#include "riffle/run/presets.h"

namespace riffle {

ConfigFlags::ConfigFlags(CLI::App& command, const std::vector<FlagForKey>& flags) {
  const ConfigBuilder defaults;
  std::map<std::string, const Fields::Field*> fields;
  for (const auto& field : defaults.fields().all()) fields[field.key] = &field;

  for (const auto& [flag, key, repeatable] : flags) {
    const Fields::Field& field = *fields.at(key);
    auto given = std::make_unique<Given>();
    given->flag = flag;
    given->key = key;
    std::string help = field.help;
    if (!field.choices.empty()) help += cat(" (", join(field.choices, ", "), ")");
    given->option = command.add_option(flag, given->value, help);
    given->option->option_text(cat("[", field.get(), "]"));
    if (repeatable) given->option->join(',');
    flags_.push_back(std::move(given));
  }
  add_preset_option(command, preset_);
  command.add_option("--config", file_, "YAML file with configuration keys")->option_text("FILE");
  command
      .add_option("--set", assignments_,
                  "Any configuration key; repeatable (riffle config lists them)")
      ->option_text("KEY=VALUE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void add_preset_option(CLI::App& command, std::string& name) {
  command.add_option("--preset", name, cat("Values to start from. ", presets_help()))
      ->option_text("NAME");
}

// Names the flag that wrote the key a message is about, the first of them in the message.
Error ConfigFlags::naming_flag(const Error& error, const std::vector<const Given*>& given_flags) {
  const std::string message = error.what();
  const auto is_of_key = [](char c) { return c == '.' || c == '_' || (c >= 'a' && c <= 'z'); };
  const Given* named = nullptr;
  std::size_t first = message.size();
  for (const Given* given : given_flags) {
    const std::size_t at = message.find(given->key);
    if (at >= first) continue;
    const std::size_t end = at + given->key.size();
    if (end < message.size() && is_of_key(message[end])) continue;  // of a longer key
    first = at;
    named = given;
  }
  if (named == nullptr) return error;
  return Error(cat(named->flag, ' ', named->value, ": ", message), error.kind());
}

Config ConfigFlags::build() const {
  ConfigBuilder builder;
  if (!preset_.empty()) builder.use_preset(preset_);
  if (!file_.empty()) builder.read_yaml(file_);
  std::vector<const Given*> given_flags;
  for (const auto& given : flags_) {
    if (given->option->count() == 0) continue;
    given_flags.push_back(given.get());
    try {
      builder.set(given->key, given->value);
    } catch (const Error& error) {
      throw Error(cat(given->flag, ' ', given->value, ": ", error.what()));
    }
  }
  for (const auto& assignment : assignments_) {
    builder.set_assignment(assignment);
    for (const Given* given : given_flags) {
      const std::string prefix = given->key + '=';
      if (!assignment.starts_with(prefix) || assignment.substr(prefix.size()) == given->value) {
        continue;
      }
      throw Error(cat(given->flag, ' ', given->value, " contradicts --set ", assignment,
                      ": both are ", given->key));
    }
  }
  const Config config = [&] {
    try {
      return builder.build();
    } catch (const Error& error) {
      throw naming_flag(error, given_flags);
    }
  }();
  const std::string& policy = config.learner.buffer.policy;
  for (const Given* given : given_flags) {
    const bool about_features = given->key == "buffer.features" || given->key == "buffer.tie";
    if (about_features && !policy_kind(policy).wants_features) {
      throw Error(cat(given->flag, ' ', given->value, " has no effect with --buffer ", policy,
                      ", which compares no features; leave it out"));
    }
  }
  return config;
}

}  // namespace riffle
