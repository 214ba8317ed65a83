// Writes features to disk as they are computed: a matrix in a .npy or .safetensors file, and beside
// it a .csv that says where each row came from.
//
// The matrix is float32, one row per sample (in safetensors the tensor "features"). The table has
// the columns row, index, clip, label, key; clip is empty where there is none. Only one batch is in
// memory at a time. Both files appear when they are whole, the matrix last; it is never beside the
// table of another matrix. Not thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include <ATen/core/Tensor.h>

#include "riffle/base/new_file.h"
#include "riffle/stream/stream.h"

namespace riffle {

class FeatureFile {
 public:
  // The name's ending says the format. Throws Error unless it is .npy or .safetensors.
  FeatureFile(const std::filesystem::path& path, std::int64_t dim);

  // `features`: [samples, dim], on any device.
  void append(std::span<const Sample> samples, const at::Tensor& features);

  // Puts both files in place.
  void commit();

  std::filesystem::path table() const;

 private:
  std::string header() const;

  std::filesystem::path path_;
  std::int64_t dim_;
  std::int64_t rows_ = 0;
  NewFile matrix_;
  NewFile table_;
};

}  // namespace riffle
