#include "riffle/buffer/divided_store.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include <ATen/ATen.h>

#include "riffle/base/text.h"

namespace riffle {
namespace {

std::vector<std::int64_t> first_places(std::size_t count) {
  std::vector<std::int64_t> places(count);
  std::iota(places.begin(), places.end(), 0);
  return places;
}

// Rows in the order of the ranks that they go to or come from.
class RowsByRank {
 public:
  explicit RowsByRank(int ranks) : rows_(static_cast<std::size_t>(ranks)) {}

  void add(int rank, std::int64_t row) { rows_[static_cast<std::size_t>(rank)].push_back(row); }

  std::vector<std::int64_t> counts() const {
    std::vector<std::int64_t> counts;
    for (const auto& of_rank : rows_) counts.push_back(std::ssize(of_rank));
    return counts;
  }
  std::vector<std::int64_t> in_order() const {
    std::vector<std::int64_t> rows;
    for (const auto& of_rank : rows_) rows.insert(rows.end(), of_rank.begin(), of_rank.end());
    return rows;
  }

 private:
  std::vector<std::vector<std::int64_t>> rows_;
};

}  // namespace

DividedStore::DividedStore(const BufferConfig& config, std::int64_t slots, int picture_size,
                           at::Device device, Ranks& ranks)
    : config_(config),
      picture_size_(picture_size),
      device_(device),
      ranks_(ranks),
      own_(make_store(config, slots_per_rank(slots, ranks), picture_size, device)) {}

std::vector<std::int64_t> DividedStore::places(std::span<const std::int64_t> slots) const {
  std::vector<std::int64_t> places;
  for (const std::int64_t slot : slots) {
    if (owner(slot) != ranks_.rank()) {
      throw std::logic_error(cat("slot ", slot, " lives with another rank"));
    }
    places.push_back(slot / ranks_.size());
  }
  return places;
}

Store& DividedStore::staging(std::size_t pictures) const {
  if (!staging_ || pictures > staging_size_) {
    staging_size_ = std::max<std::size_t>(1, pictures);
    staging_ =
        make_store(config_, static_cast<std::int64_t>(staging_size_), picture_size_, device_);
  }
  return *staging_;
}

void DividedStore::put(std::span<const std::int64_t> slots, const at::Tensor& pictures) {
  const auto count = static_cast<std::size_t>(ranks_.part_of(std::ssize(slots)));
  const auto rank = static_cast<std::size_t>(ranks_.rank());
  Store& brought = staging(count);
  brought.put(first_places(count), pictures);

  RowsByRank sent(ranks_.size()), received(ranks_.size());
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const auto from = i / count;
    if (from == rank) sent.add(owner(slots[i]), static_cast<std::int64_t>(i - from * count));
    if (owner(slots[i]) == ranks_.rank()) received.add(static_cast<int>(from), slots[i]);
  }
  const auto kept = received.in_order();
  const at::Tensor stored =
      ranks_.exchange(brought.read(sent.in_order()), sent.counts(), received.counts());
  if (!kept.empty()) own_->write(places(kept), stored);
  staged_slots_.assign(slots.begin(), slots.end());
}

Pictures DividedStore::get(std::span<const std::int64_t> slots) const {
  const auto count = static_cast<std::size_t>(ranks_.part_of(std::ssize(slots)));
  const auto rank = static_cast<std::size_t>(ranks_.rank());
  if (!std::ranges::equal(staged_slots_, slots)) {
    RowsByRank sent(ranks_.size()), received(ranks_.size());
    for (std::size_t i = 0; i < slots.size(); ++i) {
      const auto to = i / count;
      if (owner(slots[i]) == ranks_.rank()) sent.add(static_cast<int>(to), slots[i]);
      if (to == rank) received.add(owner(slots[i]), static_cast<std::int64_t>(i - to * count));
    }
    const at::Tensor stored =
        ranks_.exchange(own_->read(places(sent.in_order())), sent.counts(), received.counts());
    staged_slots_.clear();
    if (count > 0) staging(count).write(received.in_order(), stored);
    staged_slots_.assign(slots.begin(), slots.end());
  }
  return staging(count).get(first_places(count));
}

void DividedStore::copy(std::span<const std::int64_t> from, std::span<const std::int64_t> to) {
  RowsByRank sent(ranks_.size()), received(ranks_.size());
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (owner(from[i]) == ranks_.rank()) sent.add(owner(to[i]), from[i]);
    if (owner(to[i]) == ranks_.rank()) received.add(owner(from[i]), to[i]);
  }
  const auto kept = received.in_order();
  const at::Tensor stored =
      ranks_.exchange(own_->read(places(sent.in_order())), sent.counts(), received.counts());
  if (!kept.empty()) own_->write(places(kept), stored);
}

at::Tensor DividedStore::read(std::span<const std::int64_t> slots) const {
  return own_->read(places(slots));
}

void DividedStore::write(std::span<const std::int64_t> slots, const at::Tensor& stored) {
  // Other ranks would keep old copies, or wait for an exchange in which this one takes no part.
  if (!staged_slots_.empty()) {
    throw std::logic_error("pictures divided over ranks are written before any are put");
  }
  own_->write(places(slots), stored);
}

}  // namespace riffle
