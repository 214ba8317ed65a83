#include "riffle/run/run_probes.h"

#include <algorithm>
#include <csignal>

#include "riffle/base/log.h"
#include "riffle/base/text.h"
#include "riffle/dist/ranks.h"

namespace riffle {

RunProbes::RunProbes(const RunFolder& folder, const ProbeConfig& config, std::int64_t from,
                     std::vector<std::string> program,
                     std::function<void(const ProbeRecord&)> found)
    : folder_(folder), config_(config), program_(std::move(program)), found_(std::move(found)) {
  if (!active() || from == 0) return;
  // The run may have records of later updates, from before it was taken back to a checkpoint.
  for (const ProbeRecord& record : read_probes(folder_)) {
    if (record.val == config_.val && record.update <= from) probed_ = record.update;
  }
  const std::int64_t last_due = from / config_.every * config_.every;
  if (probed_ < last_due) due_ = last_due;
}

RunProbes::~RunProbes() {
  if (child_) child_->signal(SIGKILL);
}

bool RunProbes::due(std::int64_t update) {
  if (!active() || update % config_.every != 0) return false;
  due_ = update;
  return true;
}

void RunProbes::start(const std::string& checkpoint, std::int64_t update) {
  std::vector<std::string> command = program_;
  for (const std::string& word :
       {folder_.path().string(), std::string("--checkpoint"), checkpoint, std::string("--train"),
        config_.train, std::string("--val"), config_.val, std::string("--samples"),
        std::to_string(config_.samples), std::string("--background"), std::string("--trained-only"),
        std::string("--json")}) {
    command.push_back(word);
  }
  probed_ = update;
  try {
    // Of a run by several ranks, the probe is not one.
    child_ = std::make_unique<ChildProcess>(command, ChildErrors::inherited, launcher_variables());
  } catch (const Error& error) {
    log_warning(cat("a probe could not be started: ", error.what()));
  }
}

void RunProbes::take_result() {
  const std::string how = child_->wait();
  child_.reset();
  finish_progress();
  const auto records = read_probes(folder_);
  const auto record = std::ranges::find_if(records, [&](const ProbeRecord& candidate) {
    return candidate.update == probed_ && candidate.val == config_.val;
  });
  if (how != "exit code 0" || record == records.end()) {
    log_warning(cat("the probe of update ", probed_, " failed: ", how));
    return;
  }
  log_info(cat("probe of update ", record->update, ": linear ", fixed(record->linear_top1, 1),
               " %, k-NN ", fixed(record->knn_top1, 1), " %"));
  found_(*record);
}

void RunProbes::keep_up(const std::string& last, std::int64_t last_update) {
  if (child_) {
    child_->lines();
    if (!child_->ended()) return;
    take_result();
  }
  if (!due_ || last_update < *due_) return;
  due_.reset();
  start(last, last_update);
}

void RunProbes::finish(const std::string& last, std::int64_t last_update) {
  if (!active()) return;
  if (child_) take_result();
  if (last_update <= probed_) return;
  start(last, last_update);
  if (child_) take_result();
}

}  // namespace riffle
