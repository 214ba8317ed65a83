// Whether a configuration is the one that a checkpoint was made with. After a flipped bit or a lost
// line of config.yaml, another network would be read otherwise, or another run continued.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "riffle/run/config.h"

namespace riffle {

struct ChangedKey {
  std::string key;
  std::string now;
  std::string before;
};

// Returns the keys in which `config` is not what a checkpoint was made with: `made_with`, as
// Checkpoint::config has it, or none if that is not known. `name`: the checkpoint's, for errors.
std::vector<ChangedKey> changed_keys(Config config, const std::string& made_with,
                                     const std::string& name);

// Returns "RUN: config.yaml is not the one that NAME was made with: KEY is 'x', was 'y'".
std::string changed_config_text(const std::filesystem::path& run, const std::string& name,
                                std::span<const ChangedKey> changed);

// Throws Error with that text if a key of the network, of its views or of the stored pictures is
// among them. `state`: the checkpoint's file in its run folder.
void require_same_network(const Config& config, const std::string& made_with,
                          const std::filesystem::path& state);

}  // namespace riffle
