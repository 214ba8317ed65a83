// What a kept picture stands for, for the page of a selection: a few small pictures for each of
// those that stand for most. They are chosen by chance among the repeats that a kept picture had
// while it was one of those, as a function of the stream alone. Pictures are decoded for it now and
// then only, however many go by.
//
// Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "riffle/curate/selector.h"
#include "riffle/image/picture.h"
#include "riffle/stream/stream.h"
#include "riffle/tensors/named_tensors.h"

namespace riffle {

// Returns the small square that the page shows of a picture's file, or nothing if it cannot be
// decoded.
std::optional<Picture> thumbnail(std::span<const std::byte> file);

class Examples {
 public:
  // Kept pictures that have some, and how many each has, at most.
  static constexpr std::size_t kMost = 96, kEach = 3;

  // Takes what Selector::offer() said of these samples, which are in the order of the stream.
  void take(std::span<const Sample> samples, std::span<const Repeat> repeats);
  // Returns those of the kept picture with this index, as JPEGs.
  std::vector<std::string> of(std::uint64_t index) const;

  // Returns the exact state. restore() throws Error if it is damaged.
  NamedTensors save() const;
  void restore(const NamedTensors& state);

 private:
  struct Entry {
    // How many pictures the kept one stands for.
    std::int64_t count = 0;
    std::vector<std::string> jpegs;
  };

  Entry* entry_for(const Repeat& repeat);
  static void add(const Sample& sample, Entry& entry);

  std::map<std::uint64_t, Entry> entries_;  // by index of the kept picture
};

}  // namespace riffle
