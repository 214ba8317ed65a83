// Named tensors in a file of the safetensors format: eight bytes with the length of a JSON header
// (little-endian), the header, then the raw values of all tensors without gaps.
//
// Types: F64, F32, F16, BF16, I64, I32, U8, BOOL. Tensors are written row-major from the CPU,
// whatever their layout and device. The machine must be little-endian.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "riffle/tensors/named_tensors.h"

namespace riffle {

struct Safetensors {
  // On the CPU, in the order of the file.
  NamedTensors tensors;
  // Free text, as the format allows.
  std::map<std::string, std::string> metadata;
};

// Replaces `path` in one step. Does not copy a tensor that lies row-major on the CPU. Throws Error
// if the file cannot be written, std::logic_error for a repeated name or a type that the format
// lacks.
void write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                       const std::map<std::string, std::string>& metadata = {});

// Returns the tensors and the metadata. Throws Error, naming the file and what is wrong with it,
// unless all of it is valid: a header that can be parsed, known types, and values that fill the
// rest of the file exactly, without gap or overlap.
Safetensors read_safetensors(const std::filesystem::path& path);

}  // namespace riffle
