// The first phase of a study: a run that is made once, in OUT/runs/first, and whose network all
// other runs start from. Its weights, encoder and heads, are OUT/first.safetensors; once they are
// there, nothing else of it is needed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "riffle/run/config.h"

namespace riffle {

// Returns the file with the weights. Makes the first phase, or resumes it, unless it is done; if
// another process is at it, waits for that one. Returns nothing if a signal stopped it. `threads`
// as in make_run().
std::optional<std::filesystem::path> first_weights(const Config& first,
                                                   const std::filesystem::path& out,
                                                   std::int64_t threads = 0);

// Returns whether `out` has the weights.
bool is_first_done(const std::filesystem::path& out);

// Returns whether what `out` has of a first phase, if anything, was made with these settings.
bool is_first_of(const Config& first, const std::filesystem::path& out);

// Returns whether `yaml`, of a file that may be of an earlier version, is this configuration: keys
// that it lacks have their defaults.
bool same_config(const std::string& yaml, const Config& config, const std::filesystem::path& file);

}  // namespace riffle
