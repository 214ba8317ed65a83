#include "riffle/buffer/policy.h"

#include <algorithm>
#include <type_traits>

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/buffer/fifo.h"
#include "riffle/buffer/merge.h"
#include "riffle/buffer/minred.h"
#include "riffle/buffer/reservoir.h"

namespace riffle {
namespace {

template <typename Kind>
std::unique_ptr<Policy> make([[maybe_unused]] const PolicySetting& setting) {
  if constexpr (std::is_constructible_v<Kind, const PolicySetting&>) {
    return std::make_unique<Kind>(setting);
  } else {
    return std::make_unique<Kind>();
  }
}

template <typename Kind>
PolicyMemory memory(const PolicySetting& setting) {
  const std::uint64_t width = setting.config.feature_type == FeatureType::float32 ? 4 : 2;
  PolicyMemory memory;
  memory.features = static_cast<std::uint64_t>(setting.slots * setting.feature_dim) * width;
  memory.index = NearestIndex::bytes(Kind::index_config(setting)) - memory.features;
  return memory;
}

const std::vector<PolicyKind>& known_policies() {
  // Checkpoints hold a policy's number in this table: new ones go to its end.
  static const std::vector<PolicyKind> kPolicies = {
      // A buffer of one batch: the one before leaves.
      {"none", make<Fifo>, Fifo::read},
      {"fifo", make<Fifo>, Fifo::read},
      {"reservoir", make<Reservoir>, Reservoir::read},
      {"minred", make<MinRed>, MinRed::read, /*wants_features=*/true, memory<MinRed>},
      {"merge", make<Merge>, Merge::read, /*wants_features=*/true, memory<Merge>},
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

const PolicyKind& policy_of_number(std::int64_t number) {
  const auto& known = known_policies();
  if (number < 0 || number >= std::ssize(known)) {
    throw Error(cat("saved state: policy ", number, " is unknown"));
  }
  return known[static_cast<std::size_t>(number)];
}

const PolicyKind& policy_kind(const std::string& name) {
  return known_policies()[static_cast<std::size_t>(number_of_policy(name))];
}

}  // namespace riffle
