// The same training step in Python torch, in several settings, to measure beside ours.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "riffle/base/child_process.h"
#include "riffle/model/model_config.h"

namespace riffle {

struct StepShape {
  ModelConfig model;
  std::int64_t size = 0;
  std::int64_t batch = 0;
  std::string device;
  int threads = 0;
};

// All programs take turns, round by round, so that a change of the machine's load hits all of them.
class StepPeers {
 public:
  // No peers.
  StepPeers() = default;
  // Starts the peers: on the CPU as one would write it, and channels-last; on a GPU the authors'
  // setting, what is usual today, and the best that stock torch can do. Warns and starts none if
  // riffle was built without a Python that has torch.
  explicit StepPeers(const StepShape& shape);

  // Gives each a turn. `ours` is the images/s of riffle's turn just before.
  void round(double seconds, double ours);

  // Adds "peers" and "ratio_to_best_peer" to a result.
  void report(nlohmann::ordered_json& result) const;

 private:
  struct Peer {
    std::string name;
    std::unique_ptr<ChildProcess> process;
    std::vector<double> images_per_s;
    // Our rate over this peer's, round by round.
    std::vector<double> ratios;
    // Of the GPU.
    std::int64_t peak_bytes = 0;
  };
  std::vector<Peer> peers_;
};

// Prints riffle's rate, followed by `rest`, and what report() added.
void print_beside_peers(const nlohmann::ordered_json& result, const std::string& rest);

// Returns the most memory held so far: of the GPU, or of this process, weights and code included.
std::int64_t peak_bytes(const std::string& device);

}  // namespace riffle
