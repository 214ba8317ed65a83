// One page about one run or several: what they used, how they went, where they differ.
#pragma once

#include <filesystem>
#include <span>
#include <string>

namespace riffle {

// Returns a self-contained HTML page, from the runs' configuration, metrics and newest checkpoint.
// A run may still be in progress. Throws Error if a folder is not a run.
std::string run_page(std::span<const std::filesystem::path> runs);

}  // namespace riffle
