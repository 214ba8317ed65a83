#include "riffle/train/partners.h"

#include <algorithm>
#include <unordered_map>

namespace riffle {

std::vector<std::int64_t> choose_partners(std::span<const Sample> batch, std::int64_t most_apart,
                                          Random& random) {
  std::unordered_map<std::int64_t, std::vector<std::int64_t>> clips;
  // By sample: its number among those of its clip.
  std::vector<std::int64_t> numbers;
  numbers.reserve(batch.size());
  for (std::size_t i = 0; i < batch.size(); ++i) {
    auto& frames = clips[batch[i].clip];
    numbers.push_back(std::ssize(frames));
    frames.push_back(static_cast<std::int64_t>(i));
  }
  std::vector<std::int64_t> partners;
  partners.reserve(batch.size());
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const auto& frames = clips[batch[i].clip];
    const std::int64_t number = numbers[i];
    const std::int64_t first = number - std::min(number, most_apart);
    const std::int64_t last = number + std::min(std::ssize(frames) - 1 - number, most_apart);
    if (batch[i].clip == kNoClip || first == last) {
      partners.push_back(static_cast<std::int64_t>(i));
      continue;
    }
    std::int64_t chosen =
        first + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(last - first)));
    if (chosen >= number) ++chosen;
    partners.push_back(frames[static_cast<std::size_t>(chosen)]);
  }
  return partners;
}

std::int64_t count_alone(std::span<const std::int64_t> partners) {
  std::int64_t alone = 0;
  for (std::size_t i = 0; i < partners.size(); ++i) {
    if (partners[i] == static_cast<std::int64_t>(i)) ++alone;
  }
  return alone;
}

}  // namespace riffle
