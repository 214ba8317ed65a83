// What the benchmarks that take turns with a peer have in common on the command line.
#pragma once

#include <CLI/CLI.hpp>

namespace riffle {

struct BenchTurns {
  int rounds = 5;
  double seconds = 2.0;
  bool json = false;

  // Adds --rounds, --seconds and --json, which write to this: it must outlive the command.
  void add_to(CLI::App& command) {
    // Bounds of our own: those of CLI11's PositiveNumber have 300 digits in the error.
    command.add_option("--rounds", rounds, "Turns each program takes")
        ->check(CLI::Range(1, 1'000'000))
        ->capture_default_str();
    command.add_option("--seconds", seconds, "Length of a turn")
        ->check(CLI::Range(0.001, 1e6))
        ->capture_default_str();
    command.add_flag("--json", json, "Print the result as one JSON object");
  }
};

}  // namespace riffle
