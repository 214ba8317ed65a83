#include "riffle/buffer/policy.h"

#include <algorithm>

#include <torch/torch.h>

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/buffer/fifo.h"
#include "riffle/buffer/minred.h"
#include "riffle/buffer/reservoir.h"

namespace riffle {
namespace {

// What a policy may want to know.
struct Setting {
  const BufferConfig& config;
  std::int64_t slots;
  std::int64_t feature_dim;
  std::uint64_t seed;
  at::Device device;
};

using Made = std::unique_ptr<Policy>;

struct KnownPolicy {
  std::string name;
  Made (*make)(const Setting& setting);
};

const std::vector<KnownPolicy>& known_policies() {
  // Checkpoints hold a policy's number in this table: new ones go to its end.
  static const std::vector<KnownPolicy> kPolicies = {
      // A buffer of one batch: the one before leaves.
      {"none", [](const Setting&) -> Made { return std::make_unique<Fifo>(); }},
      {"fifo", [](const Setting&) -> Made { return std::make_unique<Fifo>(); }},
      {"reservoir", [](const Setting& s) -> Made { return std::make_unique<Reservoir>(s.seed); }},
      {"minred",
       [](const Setting& s) -> Made {
         return std::make_unique<MinRed>(s.config, s.slots, s.feature_dim, s.device);
       }},
  };
  return kPolicies;
}

}  // namespace

std::vector<std::string> policy_names() {
  std::vector<std::string> names;
  for (const auto& known : known_policies()) names.push_back(known.name);
  return names;
}

std::int64_t number_of_policy(const std::string& name) {
  const auto names = policy_names();
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) throw Error(unknown_name("buffer.policy", name, names));
  return found - names.begin();
}

std::unique_ptr<Policy> make_policy(const BufferConfig& config, std::int64_t slots,
                                    std::int64_t feature_dim, std::uint64_t seed,
                                    at::Device device) {
  const auto number = static_cast<std::size_t>(number_of_policy(config.policy));
  return known_policies()[number].make({config, slots, feature_dim, seed, device});
}

}  // namespace riffle
