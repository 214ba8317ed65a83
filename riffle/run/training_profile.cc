#include "riffle/run/training_profile.h"

#include <utility>

#include "riffle/base/text.h"

namespace riffle {
namespace {

// The first updates look for the fastest algorithms, and queues fill.
constexpr std::int64_t kWarmUp = 20;
constexpr std::int64_t kUpdates = 100;

}  // namespace

TrainingProfile::TrainingProfile(Learner& learner, c10::Device device)
    : learner_(learner), device_(device), begin_(learner.update() + kWarmUp) {}

std::optional<std::string> TrainingProfile::after_update() {
  if (done_) return std::nullopt;
  if (learner_.update() == begin_) {
    times_ = learner_.times();
    start_ = std::chrono::steady_clock::now();
    parts_.emplace(device_);
  }
  if (learner_.update() < begin_ + kUpdates) return std::nullopt;
  return finish();
}

std::optional<std::string> TrainingProfile::finish() {
  const std::int64_t updates = learner_.update() - begin_;
  if (std::exchange(done_, true)) return std::nullopt;
  if (!parts_ || updates < 1) {
    return cat("no profile: it begins after ", kWarmUp, " updates, and the run made fewer");
  }
  const double wall =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  const auto parts = parts_->finish(updates);
  parts_.reset();

  const LearnerTimes now = learner_.times();
  double rest = wall;
  std::vector<ProfilePart> host;
  const auto add = [&](const char* name, double seconds) {
    host.push_back({name, 1e3 * seconds / static_cast<double>(updates), seconds / wall, 0, {}});
    rest -= seconds;
  };
  add("waits for the stream", now.waiting - times_.waiting);
  add("takes a batch in", now.taking - times_.taking);
  add("draws", now.drawing - times_.drawing);
  add(device_.is_cuda() ? "queues the update" : "updates", now.updating - times_.updating);
  add("tracks features", now.tracking - times_.tracking);
  add("waits for the loss", now.measuring - times_.measuring);
  add("metrics, checkpoints", rest);
  return cat("updates ", begin_ + 1, " to ", begin_ + updates, ", ",
             fixed(1e3 * wall / static_cast<double>(updates), 2), " ms each\n",
             profile_table(device_.is_cuda() ? "on the GPU" : "on the CPU", parts),
             profile_table("the learner's thread", host));
}

}  // namespace riffle
