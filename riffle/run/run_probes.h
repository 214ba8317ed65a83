// Probes of a run's checkpoints while it trains, each by a program of its own at low priority,
// which leaves its result in the run (probe_record.h). Training never waits for one.
//
// A probe that is due while another is running is made after it, of the newest checkpoint then. One
// that a stop came before is made when the run continues; what has a record is not probed again.
// One that fails is named in the log. Used by one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "riffle/base/child_process.h"
#include "riffle/run/config.h"
#include "riffle/run/probe_record.h"
#include "riffle/run/run_folder.h"

namespace riffle {

class RunProbes {
 public:
  // `from`: the update that the run continues after; 0: it begins. `program`: what `riffle probe`
  // begins with, a path first. Without it, or without sets in the configuration, there are no
  // probes. `found` is called with each result, by keep_up() or finish(). Throws Error if what
  // earlier probes found cannot be read.
  RunProbes(const RunFolder& folder, const ProbeConfig& config, std::int64_t from,
            std::vector<std::string> program, std::function<void(const ProbeRecord&)> found);
  // Ends a probe that is still running.
  ~RunProbes();

  // Returns whether there are probes.
  bool active() const { return !program_.empty() && !config_.train.empty(); }
  // Returns whether a checkpoint of this update is needed, to be probed.
  bool due(std::int64_t update);
  // Must be called now and then. `last`: the newest durable checkpoint, by name and update.
  void keep_up(const std::string& last, std::int64_t last_update);
  // Probes the last checkpoint of a run unless that was done, and waits for it.
  void finish(const std::string& last, std::int64_t last_update);

 private:
  void start(const std::string& checkpoint, std::int64_t update);
  void take_result();

  const RunFolder folder_;
  const ProbeConfig config_;
  const std::vector<std::string> program_;
  const std::function<void(const ProbeRecord&)> found_;
  std::optional<std::int64_t> due_;
  std::int64_t probed_ = 0;  // the update of the last probe begun, or recorded before
  std::unique_ptr<ChildProcess> child_;
};

}  // namespace riffle
