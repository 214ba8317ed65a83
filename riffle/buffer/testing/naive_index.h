// For tests: what the nearest-neighbour index does, in the plainest way.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <vector>

#include "riffle/buffer/nearest_index.h"

namespace riffle {

// The definition, written down: a list of rows in float64, and every pair looked at for every
// removal.
class NaiveIndex {
 public:
  explicit NaiveIndex(const NearestIndexConfig& config) : tie_(config.tie), merge_(config.merge) {}

  void put(std::int64_t slot, std::uint64_t age, const std::vector<double>& stored,
           double weight = 1) {
    rows_[slot] = {++changes_, age, stored, dot(stored, stored), weight};
  }
  double weight(std::int64_t slot) const { return rows_.at(slot).weight; }
  void reinforce(std::int64_t slot, double added) {
    double& weight = rows_.at(slot).weight;
    weight = std::max(weight, std::min(weight + added, merge_->weight_limit));
  }
  void halve_weights() {
    for (auto& [slot, row] : rows_) row.weight /= 2;
  }
  void erase(std::int64_t slot) { rows_.erase(slot); }
  bool contains(std::int64_t slot) const { return rows_.count(slot) > 0; }
  std::int64_t size() const { return static_cast<std::int64_t>(rows_.size()); }
  std::vector<std::int64_t> slots() const {
    std::vector<std::int64_t> all;
    for (const auto& [slot, row] : rows_) all.push_back(slot);
    return all;
  }

  struct Row {
    std::uint64_t change;
    std::uint64_t age;
    std::vector<double> values;
    double square;
    double weight;
  };
  static double dot(const std::vector<double>& a, const std::vector<double>& b) {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
  }
  static double distance(const Row& a, const Row& b) {
    return 1.0 - dot(a.values, b.values) / std::sqrt(a.square * b.square);
  }

  double nearest(std::int64_t slot) const {
    double best = 2.0;
    for (const auto& [other, row] : rows_) {
      if (other != slot) best = std::min(best, distance(rows_.at(slot), row));
    }
    return best;
  }

  std::vector<Removal> take(std::int64_t n) {
    std::vector<Pair> pairs;
    for (auto a = rows_.begin(); a != rows_.end(); ++a) {
      for (auto b = std::next(a); b != rows_.end(); ++b) {
        const double d = std::max(0.0, distance(a->second, b->second));
        pairs.push_back({std::llround(d * (1 << 30)), a->first, b->first, {}});
        rank(pairs.back());
      }
    }
    std::vector<Removal> taken;
    while (static_cast<std::int64_t>(taken.size()) < n) {
      const auto first = std::min_element(pairs.begin(), pairs.end(),
                                          [](auto& a, auto& b) { return a.rank < b.rank; });
      if (first == pairs.end()) {
        taken.push_back({rows_.begin()->first, -1});
        rows_.clear();
        continue;
      }
      const std::int64_t leaver =
          a_leaves(rows_.at(first->a), rows_.at(first->b)) ? first->a : first->b;
      const std::int64_t stayer = leaver == first->a ? first->b : first->a;
      taken.push_back({leaver, stayer});
      if (merge_) {
        double& weight = rows_.at(stayer).weight;
        double added = rows_.at(leaver).weight;
        if (merge_->reach > 0) {
          const double reach = merge_->reach * (1 << 30);
          const auto distance = static_cast<double>(first->distance);
          added = distance < reach ? added / (reach / (reach - distance)) : 0;
        }
        weight = std::max(weight, std::min(weight + added, merge_->weight_limit));
      }
      rows_.erase(leaver);
      std::erase_if(pairs, [&](auto& p) { return p.a == leaver || p.b == leaver; });
      for (auto& pair : pairs) {
        if (pair.a == stayer || pair.b == stayer) rank(pair);
      }
    }
    return taken;
  }

 private:
  // Smallest distance (in units of 2^-30) or cost, then smallest later change, then smallest
  // earlier change.
  struct Pair {
    std::int64_t distance;
    std::int64_t a, b;
    std::tuple<double, std::uint64_t, std::uint64_t> rank;
  };
  void rank(Pair& pair) const {
    const Row& a = rows_.at(pair.a);
    const Row& b = rows_.at(pair.b);
    double cost = static_cast<double>(pair.distance);
    if (merge_) {
      if (merge_->reach > 0) cost = cost / (1 + cost / (merge_->reach * (1 << 30)));
      const double share = 1 / (1 / a.weight + 1 / b.weight);
      const double root = std::sqrt(share);
      const double powers[] = {1, std::sqrt(root), root, root * std::sqrt(root), share};
      cost = static_cast<float>(cost * powers[merge_->quarters]);
    }
    pair.rank = {cost, std::max(a.change, b.change), std::min(a.change, b.change)};
  }
  // Chance in proportion to the weights, by the finaliser of SplitMix64 over the two ages.
  static bool older_stays(const Row& older, const Row& newer) {
    std::uint64_t x = older.age * 0x9E3779B97F4A7C15 + newer.age;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
    x = x ^ (x >> 31);
    const double chance = std::ldexp(static_cast<double>(x >> 11), -53);
    return chance * (older.weight + newer.weight) < older.weight;
  }
  bool a_leaves(const Row& a, const Row& b) const {
    if (merge_ && merge_->stays == StayRule::drawn) {
      const bool a_is_older = a.age < b.age;
      return a_is_older ? !older_stays(a, b) : older_stays(b, a);
    }
    if (merge_ && a.weight != b.weight) return a.weight < b.weight;
    return (a.age < b.age) == (tie_ == TieRule::older);
  }

  TieRule tie_;
  std::optional<MergeRule> merge_;
  std::map<std::int64_t, Row> rows_;
  std::uint64_t changes_ = 0;
};

}  // namespace riffle
