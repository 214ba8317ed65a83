// Pictures divided over ranks (riffle/dist): slot s lives with rank s % ranks.
//
// All ranks call put(), get() and copy() together, with the same slots. Of those of put() and get()
// the first equal part is rank 0's, the next rank 1's and so on. A rank passes put() the pictures
// of its part, wherever they will live, and get() returns those of its part, wherever they live.
// They travel as they are stored, so a JPEG is encoded by the rank that brings it and decoded by
// the one that asks for it. Requires a number of slots that the number of ranks divides.
//
// A rank calls read() and write() by itself, for slots that live with it. write() requires that
// nothing was put yet: it restores what was saved.
#pragma once

#include <memory>
#include <vector>

#include "riffle/buffer/store.h"
#include "riffle/dist/ranks.h"

namespace riffle {

class DividedStore : public Store {
 public:
  // As make_store(); `slots` are those of all ranks.
  DividedStore(const BufferConfig& config, std::int64_t slots, int picture_size, at::Device device,
               Ranks& ranks);

  // Returns how many of `slots` slots live with one rank at most.
  static std::int64_t slots_per_rank(std::int64_t slots, const Ranks& ranks) {
    return (slots + ranks.size() - 1) / ranks.size();
  }

  // Returns the rank that a slot lives with.
  static int owner(std::int64_t slot, const Ranks& ranks) {
    return static_cast<int>(slot % ranks.size());
  }

  void put(std::span<const std::int64_t> slots, const at::Tensor& pictures) override;
  // The tensor is valid until the next put() or get(). What was put last comes without an exchange.
  Pictures get(std::span<const std::int64_t> slots) const override;
  at::Device device() const override { return own_->device(); }
  std::int64_t stored_bytes() const override { return own_->stored_bytes(); }
  at::Tensor read(std::span<const std::int64_t> slots) const override;
  void write(std::span<const std::int64_t> slots, const at::Tensor& stored) override;
  // Requires that no slot to copy to is one of those put or asked for last.
  void copy(std::span<const std::int64_t> from, std::span<const std::int64_t> to) override;

 private:
  int owner(std::int64_t slot) const { return owner(slot, ranks_); }
  std::vector<std::int64_t> places(std::span<const std::int64_t> slots) const;
  Store& staging(std::size_t pictures) const;

  const BufferConfig config_;
  const int picture_size_;
  const at::Device device_;
  Ranks& ranks_;
  std::unique_ptr<Store> own_;
  // This rank's part of the last put() or get(), in order.
  mutable std::unique_ptr<Store> staging_;
  mutable std::size_t staging_size_ = 0;
  // The slots of that put() or get(), of all ranks; the same on all.
  mutable std::vector<std::int64_t> staged_slots_;
};

}  // namespace riffle
