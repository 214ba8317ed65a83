// How long the runs of a study will take, before they are begun.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "riffle/study/study_choice.h"
#include "riffle/study/study_file.h"

namespace riffle {

// What an update of some configuration takes on this machine, without its buffer.
struct UpdateCost {
  double seconds = 0;
  // Of the process, at most; and of the GPU.
  std::uint64_t host_bytes = 0;
  std::uint64_t device_bytes = 0;
};

// Makes a few updates on generated pictures, which are there before the first of them is timed.
// Throws Error if the device is not available.
UpdateCost measure_update(const Config& config);

struct RunEstimate {
  StudyRun run;
  bool done = false;
  // Of training that is left; NaN: unknown.
  double seconds = 0;
};

struct StudyEstimate {
  std::vector<RunEstimate> runs;
  // Says where the figures come from.
  std::string basis;

  // Returns NaN if the time of one is unknown.
  double total() const;
};

// What a run takes at most.
struct RunNeeds {
  double seconds = 0;
  std::uint64_t host_bytes = 0;
  std::uint64_t device_bytes = 0;
  // While it is made; its last checkpoint stays.
  std::uint64_t disk_bytes = 0;
  // In TMPDIR, where its stream is shuffled, if the source's pictures are of the stored size.
  std::uint64_t temporary_bytes = 0;
};

// Throws Error if the buffer's memory cannot be planned, as when the device is not available.
RunNeeds needs_of(const Config& config, const UpdateCost& cost);

// Returns an estimate for the chosen runs: from the speed of the runs in `out` that are done, or,
// if none is, from a few updates of the first run on generated pictures. Filling the buffer,
// waiting for a slow stream and probing come on top.
StudyEstimate estimate_study(const Study& study, const std::filesystem::path& out,
                             const RunChoice& choice = {});

}  // namespace riffle
