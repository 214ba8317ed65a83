// The evaluations of a study: accuracies of each run's checkpoints on labelled pictures that are
// read once.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
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

  // Returns the result of the run in `folder`, which has ended, or nothing if a signal asked to
  // stop. Reads the probe sets on the first call and whenever the size of the pictures changes, and
  // sets that are too large to be held (labelled_set.h) for each evaluation.
  std::optional<RunResult> measure_run(const RunFolder& folder, const StudyRun& run);

 private:
  struct Set {
    LabelledSet train;
    LabelledSet val;
  };

  void open_sets(EncoderInput input);
  std::map<std::string, Accuracy> accuracies(Objective& objective, RunResult& result);
  std::map<std::string, Accuracy> untrained_accuracies(const Config& config, RunResult& result);
  // Returns Stream::turns() of a run's stream.
  const std::vector<std::int64_t>& turns_of(const Config& config);
  // Returns, by group, the percentage of these labels.
  std::map<std::string, double> shares(const std::deque<std::string>& labels) const;
  ResultPoint measure_checkpoint(const RunFolder& folder, const StudyRun& run,
                                 const std::string& name, RecentLabels* recent, RunResult& result);

  struct Group {
    std::set<std::string> labels;
    // Rows of the first set's validation pictures.
    at::Tensor rows;
  };

  const ProbePlan& plan_;
  // Of `sets_`; zero: none.
  EncoderInput input_{0};
  std::vector<Set> sets_;
  std::map<std::string, Group> groups_;
  // By source and shapes.
  std::map<std::pair<std::string, std::string>, std::vector<std::int64_t>> turns_;
  // By network and seed.
  std::map<std::string, std::map<std::string, Accuracy>> untrained_;
};

// Returns the checkpoints to evaluate of a run of `updates` updates: those nearest to `points`
// places evenly along it, the newest being the last. One that could not be written is left out.
std::vector<std::string> evaluation_checkpoints(const std::vector<std::string>& names,
                                                std::int64_t updates, std::int64_t points);

}  // namespace riffle
