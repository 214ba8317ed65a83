// The curves that pages about runs show, from keys of metrics.jsonl.
#pragma once

#include <string>
#include <vector>

namespace riffle {

// One chart: what it shows and how a run's value comes from its metrics.
struct ShownCurve {
  std::string title;
  std::string label;
  std::string key;
  std::string caption;
  double factor = 1;
  // Times the batch: from updates to pictures.
  bool per_batch = false;
  bool smooth = false;
  // Shown if some value is larger.
  double least = 0;
};

// Returns them in the order in which pages show them.
const std::vector<ShownCurve>& shown_curves();

}  // namespace riffle
