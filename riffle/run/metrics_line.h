// The content of a line of metrics.jsonl. docs/formats/run-folder.md explains the keys.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "riffle/run/checkpointer.h"
#include "riffle/train/learner.h"

namespace riffle {

using MetricsLine = std::vector<std::pair<std::string, double>>;

// Returns the part that depends on the run alone: the same however often it was interrupted.
MetricsLine metrics_line(const UpdateReport& report, const BufferStats& buffer,
                         const std::map<std::string, std::int64_t>& skipped);

// The part that depends on the wall clock: how fast stream and optimiser were since the last line.
class Rates {
 public:
  explicit Rates(const Learner& learner) : learner_(learner) { start(); }

  // Measures from now on.
  void start();
  void add(MetricsLine& line, double seconds, const Checkpointer::Status& checkpoints);

 private:
  struct Counts {
    std::chrono::steady_clock::time_point time;
    std::int64_t updates = 0;
    std::int64_t batches = 0;
    std::int64_t samples = 0;
    Intake::Waits waits;
  };
  Counts now() const;

  const Learner& learner_;
  Counts last_;
};

}  // namespace riffle
