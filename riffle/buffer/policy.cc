#include "riffle/buffer/policy.h"

#include <stdexcept>

#include <torch/torch.h>

#include "riffle/buffer/fifo.h"
#include "riffle/buffer/minred.h"
#include "riffle/buffer/reservoir.h"

namespace riffle {

std::unique_ptr<Policy> make_policy(const BufferConfig& config, std::int64_t slots,
                                    std::int64_t feature_dim, std::uint64_t seed,
                                    at::Device device) {
  switch (config.policy) {
    case PolicyKind::none:  // a buffer of one batch: the one before leaves
    case PolicyKind::fifo:
      return std::make_unique<Fifo>();
    case PolicyKind::reservoir:
      return std::make_unique<Reservoir>(seed);
    case PolicyKind::minred:
      return std::make_unique<MinRed>(config, slots, feature_dim, device);
  }
  throw std::logic_error("unknown policy");
}

}  // namespace riffle
