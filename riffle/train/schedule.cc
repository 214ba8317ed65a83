#include "riffle/train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>

namespace riffle {
namespace {

constexpr double kReferenceBatch = 256.0;

// From 1 at 0 to 0 at 1.
double half_cosine(double progress) {
  return 0.5 * (1.0 + std::cos(std::numbers::pi * std::clamp(progress, 0.0, 1.0)));
}

}  // namespace

Schedule::Schedule(const TrainConfig& config)
    : kind_(config.schedule),
      start_(config.lr * static_cast<double>(config.batch) / kReferenceBatch),
      final_share_(config.final_lr),
      decay_from_(config.decay_from),
      updates_(static_cast<double>(config.max_updates)),
      fixed_predictor_(config.fixed_predictor_lr) {
  config.validate();
}

double Schedule::lr(std::int64_t update) const {
  const double progress = static_cast<double>(update) / updates_;
  switch (kind_) {
    case ScheduleKind::cosine:
      return start_ * (final_share_ + (1.0 - final_share_) * half_cosine(progress));
    case ScheduleKind::constant:
      return start_;
    case ScheduleKind::constant_then_decay:
      if (updates_ == 0 || progress < decay_from_) return start_;
      return start_ * half_cosine((progress - decay_from_) / (1.0 - decay_from_));
  }
  throw std::logic_error("a schedule without a rate");
}

double Schedule::predictor_lr(std::int64_t update) const {
  return fixed_predictor_ ? start_ : lr(update);
}

}  // namespace riffle
