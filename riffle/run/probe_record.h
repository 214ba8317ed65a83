// probes.jsonl in a run folder: what probes found of its checkpoints, one JSON object a line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "riffle/eval/probe.h"
#include "riffle/run/run_folder.h"

namespace riffle {

struct ProbeRecord {
  std::int64_t update = 0;
  double linear_top1 = 0;
  double linear_top5 = 0;
  double knn_top1 = 0;
  std::string recipe;
  // The sets, with their shapes.
  std::string train;
  std::string val;
};

// Appends a line in one step; the run may be in progress. Throws Error if the disk does not take
// it.
void append_probe(const RunFolder& folder, const ProbeRecord& record);

// Returns the records by update, of one update and validation set the one written last. Passes over
// lines that are not records; none if there is no file.
std::vector<ProbeRecord> read_probes(const RunFolder& folder);

}  // namespace riffle
