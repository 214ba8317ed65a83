// The demo: the paper's claim on the embedded stream, in minutes on two cores.
//
// A stream of long clips is a poor teacher: neighbouring frames are nearly the same, and a batch of
// them holds one clip. The demo trains one small network several times for the same number of
// updates: straight from the stream (Conventional), from FIFO, reservoir and MinRed buffers of
// equal size, and from a decorrelated source that no stream could be.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "riffle/study/comparison.h"

namespace riffle {

struct DemoOptions {
  std::uint64_t seed = 0;
  std::int64_t threads = 0;  // 0: all cores
  std::vector<std::string>
      assignments;  // configuration keys to change in every mode, for the curious: key=value
};

ComparisonPlan demo_plan(const DemoOptions& options);

// What the numbers show, in a sentence or two: whether each step of the claim held, and by how
// much.
std::string demo_verdict(const Comparison& comparison);

// The table for a terminal.
std::string demo_table(const Comparison& comparison);

// The self-contained page: verdict, table, curves, contact sheets of the stream and of each buffer.
void write_demo_page(const std::filesystem::path& path, const Comparison& comparison,
                     const ComparisonPlan& plan, double seconds);

}  // namespace riffle
