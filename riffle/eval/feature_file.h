// Features on disk as they are made: a matrix in a .npy or .safetensors file, and beside it a .csv
// that says of each row where it came from.
//
// The matrix is float32, a row a sample (in safetensors the tensor "features"). The table has the
// columns row, index, clip, label, key; clip is empty where there is none. Only the batch at hand
// is in memory. Both files appear when they are whole. Used by one thread.
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
  // The format is the name's ending; another one than .npy or .safetensors throws Error.
  FeatureFile(const std::filesystem::path& path, std::int64_t dim);

  // `features`: [samples, dim], on any device.
  void append(std::span<const Sample> samples, const at::Tensor& features);

  // Both files are there after this.
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
