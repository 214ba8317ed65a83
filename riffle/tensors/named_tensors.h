// Tensors by name, in order: what weights, states and checkpoints are made of.
//
// A function that reads throws Error, naming the tensor, if it is missing or has another type or
// shape than asked for: the tensors may come from a damaged file or from another configuration.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

namespace riffle {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

// Returns the tensor of that name, or null if there is none.
const at::Tensor* tensor_or_null(const NamedTensors& tensors, std::string_view name);
// Returns the tensor of that name.
const at::Tensor& find_tensor(const NamedTensors& state, std::string_view name);

// Returns integers as a one-dimensional int64 tensor on the CPU.
at::Tensor integers_tensor(std::span<const std::int64_t> values);
// Returns them again. `count`: how many there must be; -1 for any number.
std::vector<std::int64_t> find_integers(const NamedTensors& state, std::string_view name,
                                        std::int64_t count = -1);

// Adds texts as two tensors on the CPU, NAME.bytes and NAME.lengths.
void add_texts(NamedTensors& state, const std::string& name, std::span<const std::string> texts);
// Returns them again. Requires `count` of them.
std::vector<std::string> find_texts(const NamedTensors& state, const std::string& name,
                                    std::int64_t count);

// Adds the state of a part to the state of the whole, its names after `prefix`.
void add_part(NamedTensors& state, const std::string& prefix, const NamedTensors& part);
// Returns the state of the part whose names begin with `prefix`, without it.
NamedTensors find_part(const NamedTensors& state, std::string_view prefix);

// Returns detached copies on the CPU, which later changes of the originals do not reach.
NamedTensors copies_on_cpu(const NamedTensors& tensors);

// Copies the values of `from` into the tensors of `to`, wherever they lie. Throws Error, and
// changes nothing, unless names and shapes are the same in both; `owner` says in the message whose
// `to` is.
void copy_named(const NamedTensors& from, const NamedTensors& to, const std::string& owner);

}  // namespace riffle
