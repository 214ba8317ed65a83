// Who leaves a replay buffer. A policy sees slots, the order of arrival, draws and features; never
// pictures.
//
// A slot is an index into the buffer's store and is used again after its sample left. A policy
// counts arrivals and draws itself, so that it can be used, tested and saved on its own. Used by
// one thread. A call that throws changed nothing (restore apart: a policy that refused a state must
// not be used).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include "riffle/buffer/buffer_config.h"
#include "riffle/tensors/named_tensors.h"

namespace riffle {

using Slot = std::int64_t;

struct PolicyStats {
  std::map<std::string, std::int64_t> evictions;  // how many left so far, by the reason why
  std::int64_t with_feature = 0;                  // samples held that have a feature
  // Quantiles 0, 0.1, ..., 1 of the cosine distance to the nearest other sample; empty unless asked
  // for.
  std::vector<double> nearest;
};

// What the saved state of a policy says of the samples that it holds.
struct SavedPolicy {
  // Of all samples held, in no particular order.
  std::vector<Slot> slots;
  // [slots of the buffer, dim], with whether a slot has one ([slots of the buffer] bool); both
  // undefined for a policy that keeps none. A row without a feature means nothing.
  at::Tensor features = {};
  at::Tensor has_feature = {};
  // By slot of the buffer, see Policy::weights().
  std::vector<double> weights = {};
};

class Policy {
 public:
  virtual ~Policy() = default;

  // `slots` now hold new samples, in order of arrival. `features` is [slots, dim], or undefined
  // when they have none yet.
  virtual void inserted(std::span<const Slot> slots, const at::Tensor& features) = 0;

  // `slots`, all distinct, were drawn for training.
  virtual void drawn(std::span<const Slot> /*slots*/) {}

  // The network gave these features for samples that are held in `slots`, all distinct.
  virtual void tracked(std::span<const Slot> /*slots*/, const at::Tensor& /*features*/) {}

  // Returns, by slot, how many samples of the stream each one stands for; empty if all count the
  // same.
  virtual std::span<const double> weights() const { return {}; }

  // Returns the n samples that leave, in the order in which they leave, and forgets them. Requires
  // that at least n are held.
  virtual std::vector<Slot> evict(std::int64_t n) = 0;

  // `nearest`: with the distances, which may cost as much as many evictions.
  virtual PolicyStats stats(bool nearest) const = 0;

  // Returns everything that a restored policy needs to decide the same.
  virtual NamedTensors save() const = 0;
  virtual void restore(const NamedTensors& state) = 0;
};

// What a policy is constructed from.
struct PolicySetting {
  const BufferConfig& config;
  std::int64_t slots = 0;  // numbered from 0
  std::int64_t feature_dim = 0;
  std::uint64_t seed = 0;
  at::Device device = at::Device(at::kCPU);  // where features come from and are kept
};

// What a policy keeps on the device of the features.
struct PolicyMemory {
  std::uint64_t features = 0;
  std::uint64_t index = 0;  // whatever finds neighbours among them
};

// A row of the table of policies in policy.cc.
struct PolicyKind {
  std::string name;
  std::unique_ptr<Policy> (*make)(const PolicySetting& setting);
  // Reads what Policy::save() gave, without making a policy. `slots`: how many the buffer has.
  // Throws Error if the state is damaged; whether SavedPolicy::slots are the buffer's is for the
  // caller to check.
  SavedPolicy (*read)(const NamedTensors& state, std::int64_t slots);
  // Whether the policy wants a feature of each sample, on arrival or with the first draw, as
  // buffer.features says.
  bool wants_features = false;
  // What the features take; null for a policy that keeps none.
  PolicyMemory (*memory)(const PolicySetting& setting) = nullptr;
};

// The names that buffer.policy takes.
std::vector<std::string> policy_names();
// The row of a name. Throws Error if the name is unknown.
const PolicyKind& policy_kind(const std::string& name);
// What stands for a policy in files. Throws Error if the name is unknown.
std::int64_t number_of_policy(const std::string& name);
// The row of such a number. Throws Error if there is none.
const PolicyKind& policy_of_number(std::int64_t number);

}  // namespace riffle
