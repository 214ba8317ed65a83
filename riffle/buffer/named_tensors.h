// State as named tensors on the CPU: what checkpoints are made of.
//
// Reading throws Error naming the tensor when it is missing or has another type or shape than asked
// for: the state may come from a damaged file or from another configuration.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "riffle/base/named_tensors.h"

namespace riffle {

const at::Tensor& find_tensor(const NamedTensors& state, std::string_view name);

// Whole numbers, as a one-dimensional int64 tensor.
at::Tensor integers_tensor(std::span<const std::int64_t> values);
// `count`: how many there must be; -1 for any number.
std::vector<std::int64_t> find_integers(const NamedTensors& state, std::string_view name,
                                        std::int64_t count = -1);

// Texts as two tensors, NAME.bytes and NAME.lengths.
void add_texts(NamedTensors& state, const std::string& name, std::span<const std::string> texts);
std::vector<std::string> find_texts(const NamedTensors& state, const std::string& name,
                                    std::int64_t count);

// A part's state inside that of the whole: every name gets, or loses, `prefix`.
void add_part(NamedTensors& state, const std::string& prefix, const NamedTensors& part);
NamedTensors find_part(const NamedTensors& state, std::string_view prefix);

}  // namespace riffle
