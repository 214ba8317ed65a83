#include "riffle/curate/examples.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "riffle/base/error.h"
#include "riffle/base/random.h"
#include "riffle/image/codec.h"
#include "riffle/image/resize.h"
#include "riffle/stream/decoding.h"

namespace riffle {
namespace {

constexpr int kThumbnail = 72;

std::string jpeg_of(const Picture& picture) {
  const auto bytes = encode_jpeg(picture);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

std::optional<Picture> thumbnail(std::span<const std::byte> file) {
  auto decoded = decode(file, Decoding{.options = {.short_side = kThumbnail}});
  if (!decoded.picture) return std::nullopt;
  return fit_square(std::move(*decoded.picture), kThumbnail);
}

void Examples::take(std::span<const Sample> samples, std::span<const Repeat> repeats) {
  for (const Repeat& repeat : repeats) {
    const auto left = entries_.extract(repeat.index);
    Entry* entry = entry_for(repeat);
    if (entry == nullptr) continue;
    entry->count = repeat.count;
    if (!left.empty()) {
      for (std::string& jpeg : left.mapped().jpegs) {
        if (entry->jpegs.size() < kEach) entry->jpegs.push_back(std::move(jpeg));
      }
    }
    const auto sample = std::ranges::lower_bound(samples, repeat.index, {}, &Sample::index);
    if (sample != samples.end() && sample->index == repeat.index) add(*sample, *entry);
  }
}

// Returns null if the kept picture is none of those that stand for most.
Examples::Entry* Examples::entry_for(const Repeat& repeat) {
  const auto found = entries_.find(repeat.of);
  if (found != entries_.end()) return &found->second;
  if (entries_.size() >= kMost) {
    const auto least = std::ranges::min_element(
        entries_, {}, [](const auto& entry) { return entry.second.count; });
    if (least->second.count >= repeat.count) return nullptr;
    entries_.erase(least);
  }
  return &entries_[repeat.of];
}

// Each of the pictures stood for, the kept one apart, is as likely to be here as any other.
void Examples::add(const Sample& sample, Entry& entry) {
  if (!sample.picture.file) return;
  Random random(0, Purpose("example"), sample.index);
  const bool has_room = entry.jpegs.size() < kEach;
  const auto others = static_cast<double>(std::max<std::int64_t>(1, entry.count - 1));
  if (!has_room && random.uniform() >= kEach / others) return;
  const auto small = thumbnail(*sample.picture.file);
  if (!small) return;
  if (has_room) {
    entry.jpegs.push_back(jpeg_of(*small));
  } else {
    entry.jpegs[random.below(kEach)] = jpeg_of(*small);
  }
}

std::vector<std::string> Examples::of(std::uint64_t index) const {
  const auto found = entries_.find(index);
  return found == entries_.end() ? std::vector<std::string>() : found->second.jpegs;
}

NamedTensors Examples::save() const {
  std::vector<std::int64_t> indices, counts, numbers;
  std::vector<std::string> jpegs;
  for (const auto& [index, entry] : entries_) {
    indices.push_back(static_cast<std::int64_t>(index));
    counts.push_back(entry.count);
    numbers.push_back(std::ssize(entry.jpegs));
    jpegs.insert(jpegs.end(), entry.jpegs.begin(), entry.jpegs.end());
  }
  NamedTensors state = {{"indices", integers_tensor(indices)},
                        {"counts", integers_tensor(counts)},
                        {"numbers", integers_tensor(numbers)}};
  add_texts(state, "jpegs", jpegs);
  return state;
}

void Examples::restore(const NamedTensors& state) {
  const auto indices = find_integers(state, "indices");
  const auto counts = find_integers(state, "counts", std::ssize(indices));
  const auto numbers = find_integers(state, "numbers", std::ssize(indices));
  const bool sound =
      indices.size() <= kMost && std::ranges::all_of(numbers, [](std::int64_t number) {
        return number >= 0 && number <= static_cast<std::int64_t>(kEach);
      });
  if (!sound) throw Error("more examples than a selection has");
  const auto all = std::accumulate(numbers.begin(), numbers.end(), std::int64_t{0});
  const auto jpegs = find_texts(state, "jpegs", all);
  entries_.clear();
  auto next = jpegs.begin();
  for (std::size_t i = 0; i < indices.size(); ++i) {
    entries_[static_cast<std::uint64_t>(indices[i])] = {counts[i], {next, next + numbers[i]}};
    next += numbers[i];
  }
}

}  // namespace riffle
