// One page about one run or several: what they used, how they went, where they differ.
#pragma once

#include <filesystem>
#include <span>
#include <string>

namespace riffle {

// A self-contained HTML page, from the runs' config.yaml, metrics.jsonl and newest checkpoint. A
// run may still be going on. Throws Error for a folder that is no run.
std::string run_page(std::span<const std::filesystem::path> runs);

}  // namespace riffle
