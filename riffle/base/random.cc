#include "riffle/base/random.h"

#include <cmath>
#include <numbers>

namespace riffle {

float Random::normal() {
  const float radius = std::sqrt(-2.0f * std::log(1.0f - uniform()));
  return radius * std::cos(2.0f * std::numbers::pi_v<float> * uniform());
}

}  // namespace riffle
