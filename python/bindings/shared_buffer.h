// A replay buffer that Python and a loader hold together.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "python/bindings/background.h"
#include "python/bindings/owned.h"

#include "riffle/buffer/replay_buffer.h"

namespace riffle::python {

// One thread uses it, in the background: evictions among many features take their time.
class SharedBuffer {
 public:
  explicit SharedBuffer(std::shared_ptr<ReplayBuffer> buffer) : buffer_(std::move(buffer)) {}

  // Returns what `call`, which must own all that it uses, makes of the buffer.
  template <typename Call>
  auto use(Call call) {
    return work_.run([buffer = buffer_, call = std::move(call)] { return call(*buffer); });
  }
  // The same for calls that never take long.
  template <typename Call>
  auto use_shortly(Call call) {
    return work_.run_short([buffer = buffer_, call = std::move(call)] { return call(*buffer); });
  }
  const std::shared_ptr<ReplayBuffer>& get() const { return buffer_; }
  // The samples that Python inserted: for work.
  const std::shared_ptr<std::uint64_t>& inserted() const { return inserted_; }

 private:
  std::shared_ptr<ReplayBuffer> buffer_;
  std::shared_ptr<std::uint64_t> inserted_ = std::make_shared<std::uint64_t>(0);
  Background work_;
};

using OwnedBuffer = Owned<SharedBuffer>;

// A draw, with what is known of its samples.
struct DrawnBatch {
  at::Tensor pictures;  // [n, size, size, 3] uint8
  Draw draw;
  std::vector<SlotInfo> samples;
  std::int64_t update = 0;  // draws before this one
};

DrawnBatch drawn_batch(const ReplayBuffer& buffer, Draw draw, std::int64_t update);

// Adds the pictures of a buffer, which are not in its saved state, and puts them back.
void add_pictures(NamedTensors& state, const ReplayBuffer& buffer);
void put_pictures(const NamedTensors& state, ReplayBuffer& buffer);

}  // namespace riffle::python
