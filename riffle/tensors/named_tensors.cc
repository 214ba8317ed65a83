#include "riffle/tensors/named_tensors.h"

#include <cstring>
#include <map>

#include <ATen/ATen.h>

#include "riffle/base/error.h"
#include "riffle/base/text.h"

namespace riffle {
namespace {

void require_vector(const at::Tensor& tensor, std::string_view name, at::ScalarType type) {
  if (tensor.dim() != 1 || tensor.scalar_type() != type || !tensor.device().is_cpu()) {
    throw Error(cat("saved state: tensor '", name, "' is not a vector of ", at::toString(type)));
  }
}

}  // namespace

const at::Tensor* tensor_or_null(const NamedTensors& tensors, std::string_view name) {
  for (const auto& [key, tensor] : tensors) {
    if (key == name && tensor.defined()) return &tensor;
  }
  return nullptr;
}

const at::Tensor& find_tensor(const NamedTensors& state, std::string_view name) {
  const at::Tensor* found = tensor_or_null(state, name);
  if (found == nullptr) throw Error(cat("saved state: tensor '", name, "' is missing"));
  return *found;
}

at::Tensor integers_tensor(std::span<const std::int64_t> values) {
  auto tensor = at::empty({static_cast<std::int64_t>(values.size())}, at::kLong);
  if (!values.empty()) {
    std::memcpy(tensor.mutable_data_ptr<std::int64_t>(), values.data(), values.size_bytes());
  }
  return tensor;
}

std::vector<std::int64_t> find_integers(const NamedTensors& state, std::string_view name,
                                        std::int64_t count) {
  const auto& found = find_tensor(state, name);
  require_vector(found, name, at::kLong);
  if (count >= 0 && found.numel() != count) {
    throw Error(
        cat("saved state: tensor '", name, "' has ", found.numel(), " values, not ", count));
  }
  const auto tensor = found.contiguous();
  const auto* data = tensor.const_data_ptr<std::int64_t>();
  return {data, data + tensor.numel()};
}

void add_texts(NamedTensors& state, const std::string& name, std::span<const std::string> texts) {
  std::vector<std::int64_t> lengths;
  std::string all;
  for (const auto& text : texts) {
    lengths.push_back(static_cast<std::int64_t>(text.size()));
    all += text;
  }
  auto bytes = at::empty({static_cast<std::int64_t>(all.size())}, at::kByte);
  if (!all.empty()) std::memcpy(bytes.mutable_data_ptr<std::uint8_t>(), all.data(), all.size());
  state.emplace_back(name + ".bytes", bytes);
  state.emplace_back(name + ".lengths", integers_tensor(lengths));
}

std::vector<std::string> find_texts(const NamedTensors& state, const std::string& name,
                                    std::int64_t count) {
  const auto lengths = find_integers(state, name + ".lengths", count);
  const auto& found = find_tensor(state, name + ".bytes");
  require_vector(found, name + ".bytes", at::kByte);
  const auto bytes = found.contiguous();
  const auto* data = reinterpret_cast<const char*>(bytes.const_data_ptr<std::uint8_t>());
  std::vector<std::string> texts;
  std::int64_t begin = 0;
  for (const auto length : lengths) {
    if (length < 0 || length > bytes.numel() - begin) {
      throw Error(cat("saved state: '", name, ".lengths' and '", name, ".bytes' disagree"));
    }
    texts.emplace_back(data + begin, static_cast<std::size_t>(length));
    begin += length;
  }
  if (begin != bytes.numel()) {
    throw Error(cat("saved state: '", name, ".lengths' and '", name, ".bytes' disagree"));
  }
  return texts;
}

void add_part(NamedTensors& state, const std::string& prefix, const NamedTensors& part) {
  for (const auto& [name, tensor] : part) state.emplace_back(prefix + name, tensor);
}

NamedTensors find_part(const NamedTensors& state, std::string_view prefix) {
  NamedTensors part;
  for (const auto& [name, tensor] : state) {
    if (name.starts_with(prefix)) part.emplace_back(name.substr(prefix.size()), tensor);
  }
  return part;
}

NamedTensors copies_on_cpu(const NamedTensors& tensors) {
  NamedTensors copies;
  for (const auto& [name, tensor] : tensors) {
    copies.emplace_back(name, tensor.detach().to(at::kCPU, tensor.scalar_type(),
                                                 /*non_blocking=*/false, /*copy=*/true));
  }
  return copies;
}

void copy_named(const NamedTensors& from, const NamedTensors& to, const std::string& owner) {
  std::map<std::string, at::Tensor> given;
  for (const auto& [name, tensor] : from) {
    if (!given.emplace(name, tensor).second)
      throw Error(cat("weights: '", name, "' appears twice"));
  }
  for (const auto& [name, tensor] : to) {
    const auto found = given.find(name);
    if (found == given.end()) throw Error(cat("weights: '", name, "' of ", owner, " is missing"));
    if (found->second.sizes() != tensor.sizes()) {
      throw Error(cat("weights: '", name, "' has shape ", found->second.sizes(), "; ", owner,
                      " needs ", tensor.sizes()));
    }
  }
  if (given.size() != to.size()) {
    std::map<std::string, at::Tensor> unexpected = given;
    for (const auto& [name, tensor] : to) unexpected.erase(name);
    throw Error(cat("weights: '", unexpected.begin()->first, "' is not a part of ", owner));
  }
  const at::NoGradGuard no_gradient;
  for (const auto& [name, tensor] : to) at::Tensor(tensor).copy_(given[name]);
}

}  // namespace riffle
