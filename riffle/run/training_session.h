// One call of train or resume (training.h), from a learner that is ready to one that has stopped:
// fills the buffer and makes updates, with metrics, status, probes, checkpoints and progress.
#pragma once

#include "riffle/run/checkpoint.h"
#include "riffle/run/config.h"
#include "riffle/run/picture_log.h"
#include "riffle/run/run_folder.h"
#include "riffle/run/training.h"
#include "riffle/train/learner.h"

namespace riffle {

// `from`: the checkpoint that the learner and `log` were restored from; null for a new run. Stops
// by signals and throws as train() does.
TrainingResult run_session(const RunFolder& folder, const Config& config, Learner& learner,
                           PictureLog log, const Checkpoint* from, const TrainingOptions& options);

}  // namespace riffle
