#include "riffle/base/median.h"

#include <algorithm>
#include <stdexcept>

namespace riffle {

double median(std::vector<double> values) {
  if (values.empty()) throw std::logic_error("the median of nothing");
  std::ranges::sort(values);
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2.0;
}

}  // namespace riffle
