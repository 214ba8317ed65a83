// The evaluations of a study: labelled pictures read once, and what each run's checkpoints make of
// them.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "riffle/eval/probe.h"
#include "riffle/run/run_folder.h"
#include "riffle/study/run_result.h"
#include "riffle/study/study_file.h"

namespace riffle {

class StudyProbe {
 public:
  // `plan` must outlive this.
  explicit StudyProbe(const ProbePlan& plan) : plan_(plan) {}

  // What the run in `folder`, which has ended, gave. Its checkpoints may lie a few updates behind
  // the evaluations that were asked for, as training does not wait for the disk; an evaluation
  // without a checkpoint is left out. Reads the probe sets on the first call, and whenever the
  // size of the pictures changes.
  RunResult measure_run(const RunFolder& folder, const StudyRun& run);

 private:
  struct Set {
    LabelledPictures train;
    LabelledPictures val;
  };

  void read_sets(int size);
  std::map<std::string, Accuracy> accuracies(Objective& objective, RunResult& result) const;
  ResultPoint measure_checkpoint(const RunFolder& folder, const StudyRun& run,
                                 const std::string& name, RunResult& result) const;

  const ProbePlan& plan_;
  int size_ = 0;
  std::vector<Set> sets_;
  std::map<std::string, std::set<std::string>> group_labels_;
};

// The checkpoints that stand for evaluations after `points` equal parts of `updates`: of those made
// at the evaluation or behind it, but before half of the way to the next, the first. The newest is
// always the last.
std::vector<std::string> evaluation_checkpoints(const std::vector<std::string>& names,
                                                std::int64_t updates, std::int64_t points);

}  // namespace riffle
