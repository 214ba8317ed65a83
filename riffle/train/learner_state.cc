#include "riffle/train/learner_state.h"

#include <vector>

#include <ATen/ATen.h>

#include "riffle/base/error.h"
#include "riffle/base/text.h"

namespace riffle {
namespace {

constexpr const char* kNetwork = "network.";
constexpr const char* kMomentum = "momentum.";
constexpr const char* kBuffer = "buffer.";
constexpr const char* kCounts = "learner.counts";
constexpr const char* kSkippedReasons = "learner.skipped_reasons";
constexpr const char* kSkippedCounts = "learner.skipped_counts";
constexpr const char* kPosition = "stream.position";

std::vector<std::int64_t> find_counts(const NamedTensors& tensors, const char* name,
                                      std::int64_t count = -1) {
  auto values = find_integers(tensors, name, count);
  for (const auto value : values) {
    if (value < 0) throw Error(cat("saved state: tensor '", name, "' counts ", value));
  }
  return values;
}

}  // namespace

NamedTensors LearnerState::tensors() const {
  NamedTensors tensors;
  add_part(tensors, kNetwork, network);
  add_part(tensors, kMomentum, momenta);
  add_part(tensors, kBuffer, buffer);
  tensors.emplace_back(kCounts, integers_tensor(std::vector<std::int64_t>{
                                    update, updates_due, batches_taken, samples_seen}));
  add_texts(tensors, kPosition, std::vector{position});
  std::vector<std::string> reasons;
  std::vector<std::int64_t> counts;
  for (const auto& [reason, count] : skipped) {
    reasons.push_back(reason);
    counts.push_back(count);
  }
  add_texts(tensors, kSkippedReasons, reasons);
  tensors.emplace_back(kSkippedCounts, integers_tensor(counts));
  return tensors;
}

LearnerState LearnerState::read(const NamedTensors& tensors) {
  const auto counts = find_counts(tensors, kCounts, 4);
  LearnerState state{.network = find_part(tensors, kNetwork),
                     .momenta = find_part(tensors, kMomentum),
                     .buffer = find_part(tensors, kBuffer),
                     .update = counts[0],
                     .updates_due = counts[1],
                     .batches_taken = counts[2],
                     .samples_seen = counts[3],
                     .position = find_texts(tensors, kPosition, 1).front()};
  const auto skipped = find_counts(tensors, kSkippedCounts);
  const auto reasons = find_texts(tensors, kSkippedReasons, std::ssize(skipped));
  for (std::size_t i = 0; i < reasons.size(); ++i) state.skipped[reasons[i]] = skipped[i];
  return state;
}

BufferState saved_buffer_state(const NamedTensors& learner) {
  return BufferState::read(find_part(learner, kBuffer));
}

NamedTensors saved_network(const NamedTensors& learner) { return find_part(learner, kNetwork); }

}  // namespace riffle
