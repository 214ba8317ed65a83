#include "riffle/run/trace.h"

#include <cstdlib>
#include <map>

#include "riffle/base/log.h"
#include "riffle/base/text.h"
#include "riffle/image/resize.h"

namespace riffle {
namespace {

// The mean difference of two pictures of one scene, one of them a JPEG; other scenes differ by far
// more.
constexpr double kSameScene = 8;

bool is_original(const Picture& picture, const Picture& stored) {
  const Picture fitted = fit_square(picture, stored.width);
  double difference = 0;
  for (std::size_t i = 0; i < stored.rgb.size(); ++i) {
    difference += std::abs(static_cast<int>(fitted.rgb[i]) - static_cast<int>(stored.rgb[i]));
  }
  return difference <= kSameScene * static_cast<double>(stored.rgb.size());
}

}  // namespace

std::size_t find_originals(Stream& stream, const std::vector<WantedOriginal>& wanted,
                           const std::function<void(std::size_t, Sample&)>& use) {
  std::map<std::uint64_t, std::size_t> by_index;
  for (std::size_t i = 0; i < wanted.size(); ++i) by_index[wanted[i].index] = i;
  std::size_t found = 0;
  for (auto next = by_index.begin(); next != by_index.end();) {
    auto sample = stream.next();
    if (!sample) break;
    if (sample->index % 1000 == 0) {
      show_progress(cat("looking for originals: ", sample->index, " of ",
                        by_index.rbegin()->first + 1, " samples"));
    }
    while (next != by_index.end() && next->first < sample->index) ++next;
    if (next == by_index.end() || next->first != sample->index) continue;
    if (is_original(sample->picture, wanted[next->second].stored)) {
      use(next->second, *sample);
      ++found;
    }
    ++next;
  }
  finish_progress();
  return found;
}

}  // namespace riffle
