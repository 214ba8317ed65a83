// Several ways to train, side by side on the same stream with the same number of updates, and what
// each one learned.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "riffle/eval/probe.h"
#include "riffle/image/picture.h"
#include "riffle/run/config.h"

namespace riffle {

// One way to train: a row of the table.
struct Mode {
  std::string name;   // "minred"
  std::string title;  // "MinRed buffer"
  Config config;      // its seeds are set by compare()
};

// How a run stood at some update.
struct CurvePoint {
  std::int64_t update = 0;
  double loss = 0;
  double std = 0;
  double same_clip_pairs = 0;
  double clips_in_buffer = 0;
};

struct RunOutcome {
  ProbeResult probe;
  double same_clip_pairs = 0;  // mean over all updates
  std::int64_t clips_in_buffer = 0;
  std::int64_t updates = 0;
  double seconds = 0;
  std::vector<CurvePoint> curve;
  std::vector<Picture> buffer_pictures;  // a few of what the buffer held at the end
};

struct ModeOutcome {
  std::string name;
  std::string title;
  std::vector<RunOutcome> runs;  // one per repeat

  double mean(const std::function<double(const RunOutcome&)>& value) const;
  double linear_top1() const;
  double knn_top1() const;
  double same_clip_pairs() const;
  double clips_in_buffer() const;
};

struct Comparison {
  std::vector<ModeOutcome> modes;
  ProbeResult untrained;
};

struct ComparisonPlan {
  std::vector<Mode> modes;
  std::int64_t repeats = 1;  // runs of each mode, on streams and with weights of their own
  std::uint64_t seed = 0;
  std::int64_t threads = 0;  // cores to use; each run takes one. 0: all
  LabelledPictures probe_train;
  LabelledPictures probe_val;
  LinearRecipe recipe;
};

// The stream of a mode's config gets "seed" appended, so its URI must take that option. Shows
// progress on the way.
Comparison compare(const ComparisonPlan& plan);

}  // namespace riffle
