// Counter-based random numbers: a draw is a pure function of (seed, purpose, position, index of the
// draw).
//
// Nothing depends on thread count, timing or what was drawn before elsewhere, so work can be split
// in any way and a run can continue from any position. The generator is Philox4x32-10 (Salmon et
// al., "Parallel random numbers: as easy as 1, 2, 3", 2011). The same numbers can be drawn on a
// GPU.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace riffle {

// Returns one block of Philox4x32-10.
constexpr std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                              std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t product1 = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(product0)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

// What a sequence of numbers is for, named by a short constant text: Purpose("augment").
class Purpose {
 public:
  constexpr explicit Purpose(std::string_view name) {
    for (const char c : name) hash_ = (hash_ ^ static_cast<unsigned char>(c)) * 16777619u;
  }
  constexpr std::uint32_t hash() const { return hash_; }

 private:
  std::uint32_t hash_ = 2166136261u;  // FNV-1a
};

// The sequence of draws for one (seed, purpose, position). Cheap to construct: one per picture,
// clip or update. Not thread-safe.
class Random {
 public:
  Random(std::uint64_t seed, Purpose purpose, std::uint64_t position)
      : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)},
        counter_{0, purpose.hash(), static_cast<std::uint32_t>(position),
                 static_cast<std::uint32_t>(position >> 32)} {}

  std::uint32_t bits() {
    if (used_ == block_.size()) {
      block_ = philox(counter_, key_);
      ++counter_[0];
      used_ = 0;
    }
    return block_[used_++];
  }
  std::uint64_t bits64() {
    const std::uint64_t high = bits();
    return high << 32 | bits();
  }

  // Returns a number uniform in [0, 1) with 24 bits, exact in float.
  float uniform() { return static_cast<float>(bits() >> 8) * 0x1p-24f; }
  float uniform(float low, float high) { return low + (high - low) * uniform(); }
  bool chance(float probability) { return uniform() < probability; }

  // Returns a number uniform in [0, n). Requires n > 0. The bias is below n / 2^64.
  std::uint64_t below(std::uint64_t n) {
    return static_cast<std::uint64_t>((static_cast<__uint128_t>(bits64()) * n) >> 64);
  }

  // Returns a standard normal number.
  float normal();

 private:
  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 4> counter_;
  std::array<std::uint32_t, 4> block_{};
  std::size_t used_ = 4;
};

}  // namespace riffle
