#include "riffle/eval/feature_file.h"

#include <bit>
#include <fstream>
#include <stdexcept>
#include <string_view>

#include <torch/types.h>

#include "riffle/base/csv.h"
#include "riffle/base/error.h"
#include "riffle/base/text.h"

namespace riffle {
namespace {

namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little);

// Room for any shape; both formats let spaces fill what is not needed.
constexpr std::size_t kHeaderBytes = 256;
// How the text of a safetensors header begins.
constexpr std::string_view kFeatures = R"({"features":{"dtype":"F32",)";

template <typename Length>
std::string length_bytes(std::size_t value) {
  const auto length = static_cast<Length>(value);
  return {reinterpret_cast<const char*>(&length), sizeof length};
}

std::string npy_header(std::int64_t rows, std::int64_t dim) {
  std::string start("\x93NUMPY\x01\x00", 8);
  start += length_bytes<std::uint16_t>(kHeaderBytes - start.size() - 2);
  std::string text =
      cat("{'descr': '<f4', 'fortran_order': False, 'shape': (", rows, ", ", dim, "), }");
  text.resize(kHeaderBytes - start.size() - 1, ' ');
  return start + text + '\n';
}

std::string safetensors_header(std::int64_t rows, std::int64_t dim) {
  const std::string start = length_bytes<std::uint64_t>(kHeaderBytes - sizeof(std::uint64_t));
  std::string text = cat(kFeatures, R"("shape":[)", rows, ',', dim, R"(],"data_offsets":[0,)",
                         rows * dim * 4, "]}}");
  text.resize(kHeaderBytes - start.size(), ' ');
  return start + text;
}

const fs::path& known_format(const fs::path& path) {
  if (path.extension() != ".npy" && path.extension() != ".safetensors") {
    throw Error(
        cat("features go into a .npy or .safetensors file, not into '", path.string(), "'"));
  }
  return path;
}

fs::path table_for(fs::path path) { return path.replace_extension(".csv"); }

// Any .npy counts as one; a safetensors file may as well hold weights.
bool is_matrix(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string start(sizeof(std::uint64_t) + kFeatures.size(), '\0');
  if (!file.read(start.data(), std::ssize(start))) return false;
  return path.extension() == ".npy" || start.ends_with(kFeatures);
}

// a.npy and a.safetensors would both have a.csv.
const fs::path& only_one_of_its_name(const fs::path& path) {
  fs::path other = known_format(path);
  other.replace_extension(path.extension() == ".npy" ? ".safetensors" : ".npy");
  if (!fs::exists(table_for(path)) || !is_matrix(other)) return path;
  throw Error(cat(path.string(), " would take the table of ", other.string(), ", ",
                  table_for(path).string(), "; give another name, or remove the other matrix"));
}

}  // namespace

FeatureFile::FeatureFile(const fs::path& path, std::int64_t dim)
    : path_(only_one_of_its_name(path)), dim_(dim), matrix_(path), table_(table_for(path)) {
  matrix_.append(header());
  table_.append("row,index,clip,label,key\n");
}

fs::path FeatureFile::table() const { return table_for(path_); }

std::string FeatureFile::header() const {
  return path_.extension() == ".npy" ? npy_header(rows_, dim_) : safetensors_header(rows_, dim_);
}

void FeatureFile::append(std::span<const Sample> samples, const at::Tensor& features) {
  if (features.dim() != 2 || features.size(0) != std::ssize(samples) || features.size(1) != dim_) {
    throw std::logic_error(cat("features are ", features.sizes(), " for ", samples.size(),
                               " samples of width ", dim_));
  }
  const at::Tensor values = features.to(torch::kCPU, torch::kFloat32).contiguous();
  matrix_.append({static_cast<const std::byte*>(values.const_data_ptr()),
                  static_cast<std::size_t>(values.nbytes())});
  std::string lines;
  for (const Sample& sample : samples) {
    lines += cat(rows_++, ',', sample.index, ',',
                 sample.clip == kNoClip ? std::string() : cat(sample.clip), ',',
                 csv_field(sample.label), ',', csv_field(sample.key), '\n');
  }
  table_.append(lines);
}

void FeatureFile::commit() {
  matrix_.overwrite_beginning(header());
  // Two files cannot appear in one step. Without the old matrix, a kill in between leaves a table
  // alone, never a matrix beside the table of another.
  remove_durably(path_);
  table_.commit();
  matrix_.commit();
}

}  // namespace riffle
