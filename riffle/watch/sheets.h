// Pictures of a run's stream and buffer as JSON, for the page: what just arrived, what is kept, and
// what just left.
//
// A sheet: {"title": ..., "caption": ..., "pictures": [...]}. A picture: {"src": data URI, "text":
// ...}, where it is to be compared with one other that in "beside", with several those in "row".
#pragma once

#include <cstddef>

#include <nlohmann/json.hpp>

#include "riffle/run/run_folder.h"

namespace riffle {

// Returns the newest pictures that entered the buffer. Cheap: needs no checkpoint.
nlohmann::json arrived_sheet(const RunFolder& folder, std::size_t count);

// Returns sheets about the newest checkpoint: the most and the least redundant samples where the
// policy keeps features, some of all, and those that left since the checkpoint before it, each with
// the sample that stayed and is most like it; neighbours by feature, and a "map" of samples with
// "x" and "y" in [0, 1]. Reads whole checkpoints. Throws Error if there is none, or if it is
// damaged.
nlohmann::json kept_sheets(const RunFolder& folder, std::size_t count);

}  // namespace riffle
