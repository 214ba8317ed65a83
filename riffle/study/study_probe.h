// The evaluations of a study: labelled pictures read once, and what each run's checkpoints make of
// them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "riffle/eval/probe.h"
#include "riffle/run/run_folder.h"
#include "riffle/study/recent_labels.h"
#include "riffle/study/run_result.h"
#include "riffle/study/study_file.h"

namespace riffle {

class StudyProbe {
 public:
  // `plan` must outlive this.
  explicit StudyProbe(const ProbePlan& plan) : plan_(plan) {}

  // What the run in `folder`, which has ended, gave at its checkpoints. Reads the probe sets on the
  // first call, and whenever the size of the pictures changes. Nothing when a signal asked to stop.
  std::optional<RunResult> measure_run(const RunFolder& folder, const StudyRun& run);

 private:
  struct Set {
    LabelledPictures train;
    LabelledPictures val;
  };

  void read_sets(int size);
  std::map<std::string, Accuracy> accuracies(Objective& objective, RunResult& result) const;
  std::map<std::string, Accuracy> untrained_accuracies(const Config& config, RunResult& result);
  // By group: percent of these labels.
  std::map<std::string, double> shares(const std::deque<std::string>& labels) const;
  ResultPoint measure_checkpoint(const RunFolder& folder, const StudyRun& run,
                                 const std::string& name, RecentLabels* recent,
                                 RunResult& result) const;

  struct Group {
    std::set<std::string> labels;
    at::Tensor rows;  // of the first set's validation pictures
  };

  const ProbePlan& plan_;
  int size_ = 0;
  std::vector<Set> sets_;
  std::map<std::string, Group> groups_;
  std::map<std::string, std::map<std::string, Accuracy>> untrained_;  // by network and seed
};

// Of the checkpoints of a run that was to make so many updates, those to evaluate: the ones nearest
// to `points` places evenly along it, the newest being the last. One that the disk did not take is
// left out.
std::vector<std::string> evaluation_checkpoints(const std::vector<std::string>& names,
                                                std::int64_t updates, std::int64_t points);

}  // namespace riffle
