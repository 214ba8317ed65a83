// What `riffle study` and `riffle demo` have in common: where studies are found, the flags that
// choose and change their runs, and the processes that make several at once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "riffle/study/study_runner.h"

namespace riffle {

// Returns the file of a study: `name` itself if it ends in .yaml, otherwise that of the name beside
// the installed program or in the source tree it was built from. Throws Error, naming the nearest,
// if there is none.
std::filesystem::path find_study(const std::string& name);

struct StudyFlags {
  std::vector<std::string> only;
  std::vector<std::string> assignments;
  std::int64_t jobs = 1;
  // Set in the processes that StudyFlags::run() starts.
  bool worker = false;
  bool json = false;

  // Flags write to this: it must outlive the command. `jobs_flag`: "--jobs" with its other names.
  void add_to(CLI::App& command, const std::string& jobs_flag, const std::string& jobs_default);

  // Applies --set to the study. Throws Error if a key or value is wrong.
  void change(Study& study) const;
  // Returns how many runs are made at once.
  std::int64_t at_once() const;
  // Makes the chosen runs, --jobs at once. Returns nothing in a worker, which makes the runs that
  // it is told to.
  std::optional<StudyOutcome> run(const Study& study, const std::filesystem::path& out) const;
  // Returns --set as it was given, for the reader to repeat: " --set 'train.lr=0.1'".
  std::string set_text() const;
};

// Throws Error, with the first reason, if a run failed.
void require_no_failure(const StudyOutcome& outcome);

}  // namespace riffle
