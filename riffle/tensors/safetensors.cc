#include "riffle/tensors/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>
#include <torch/types.h>

#include "riffle/base/error.h"
#include "riffle/base/file.h"
#include "riffle/base/new_file.h"
#include "riffle/base/text.h"

namespace riffle {
namespace {

static_assert(std::endian::native == std::endian::little);

// Finds a key among n in log n steps. An ordered_json would need n, and n * n for a whole header.
using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kHeaderLimit = 100'000'000;  // the format's own
constexpr std::size_t kAlignment = 8;
constexpr std::size_t kMostDimensions = 64;  // LibTorch's own
constexpr const char* kMetadata = "__metadata__";

const std::vector<std::pair<std::string, torch::ScalarType>>& type_names() {
  static const std::vector<std::pair<std::string, torch::ScalarType>> names = {
      {"F64", torch::kFloat64},   {"F32", torch::kFloat32}, {"F16", torch::kFloat16},
      {"BF16", torch::kBFloat16}, {"I64", torch::kInt64},   {"I32", torch::kInt32},
      {"U8", torch::kUInt8},      {"BOOL", torch::kBool}};
  return names;
}

std::string type_name(torch::ScalarType type) {
  for (const auto& [name, candidate] : type_names()) {
    if (candidate == type) return name;
  }
  throw std::logic_error(cat("safetensors cannot hold the type ", torch::toString(type)));
}

// What the header says about one tensor.
struct Entry {
  std::string name;
  torch::ScalarType type;
  std::vector<std::int64_t> shape;
  std::uint64_t begin;
  std::uint64_t end;
};

// Collects the keys of the outermost object, in the order of the file. (A callback of Json::parse()
// would make it look at all members again after each.)
class HeaderNames : public nlohmann::json_sax<Json> {
 public:
  explicit HeaderNames(std::vector<std::string>& names) : names_(names) {}

  bool key(string_t& name) override {
    if (depth_ == 1) names_.push_back(name);
    return true;
  }
  bool start_object(std::size_t) override { return enter(); }
  bool start_array(std::size_t) override { return enter(); }
  bool end_object() override { return leave(); }
  bool end_array() override { return leave(); }
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool parse_error(std::size_t, const std::string&, const Json::exception&) override {
    return false;
  }

 private:
  bool enter() { return ++depth_ > 0; }
  bool leave() { return --depth_ >= 0; }

  std::vector<std::string>& names_;
  int depth_ = 0;
};

// Reads one file; every error names it.
class Reader {
 public:
  explicit Reader(const std::filesystem::path& path) : path_(path), file_(path) {}

  Safetensors read() {
    std::vector<std::string> names;
    const Json header = parse_header(names);
    Safetensors result;
    std::vector<Entry> entries;
    for (const std::string& name : names) {
      const Json& value = header[name];
      if (name == kMetadata) {
        result.metadata = parse_metadata(value);
      } else {
        entries.push_back(parse_entry(name, value));
      }
    }
    check_coverage(entries);
    for (const Entry& entry : entries) {
      torch::Tensor tensor = torch::empty(entry.shape, entry.type);
      file_.read(kLengthBytes + header_length_ + entry.begin,
                 {static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()});
      result.tensors.emplace_back(entry.name, std::move(tensor));
    }
    return result;
  }

 private:
  template <typename... Words>
  [[noreturn]] void refuse(const Words&... words) const {
    throw Error(cat(path_.string(), " is not a valid safetensors file: ", words...));
  }

  std::uint64_t values_size() const { return file_.size() - kLengthBytes - header_length_; }

  // `names`: the keys in the order of the file.
  Json parse_header(std::vector<std::string>& names) {
    if (file_.size() < kLengthBytes) refuse("it has ", file_.size(), " bytes");
    std::uint64_t length = 0;
    file_.read(0, std::as_writable_bytes(std::span(&length, 1)));
    if (length > kHeaderLimit || length > file_.size() - kLengthBytes) {
      refuse("its header should have ", length, " bytes, the file has ", file_.size());
    }
    header_length_ = length;
    std::string text(length, '\0');
    file_.read(kLengthBytes, std::as_writable_bytes(std::span(text)));
    HeaderNames reader(names);
    Json::sax_parse(text, &reader);
    const Json header = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!header.is_object()) refuse("its header is not a JSON object");
    // The parser keeps the last of two equal keys; a file with two tensors of one name is damaged.
    if (header.size() != names.size()) refuse("two tensors have the same name");
    return header;
  }

  std::map<std::string, std::string> parse_metadata(const Json& value) const {
    std::map<std::string, std::string> metadata;
    if (!value.is_object()) refuse(kMetadata, " is not an object");
    for (const auto& [key, text] : value.items()) {
      if (!text.is_string()) refuse(kMetadata, " has a value that is not a string: '", key, "'");
      metadata[key] = text.get<std::string>();
    }
    return metadata;
  }

  Entry parse_entry(const std::string& name, const Json& value) const {
    if (!value.is_object() || !value.contains("dtype") || !value["dtype"].is_string() ||
        !value.contains("shape") || !value["shape"].is_array() || !value.contains("data_offsets") ||
        !value["data_offsets"].is_array() || value["data_offsets"].size() != 2) {
      refuse("'", name, "' lacks its dtype, shape or data_offsets");
    }
    Entry entry;
    entry.name = name;
    entry.type = parse_type(name, value["dtype"].get<std::string>());
    std::uint64_t size = torch::elementSize(entry.type);
    if (value["shape"].size() > kMostDimensions) {
      refuse("'", name, "' has ", value["shape"].size(), " dimensions");
    }
    for (const Json& extent : value["shape"]) {
      if (!extent.is_number_unsigned())
        refuse("'", name, "' has the shape ", value["shape"].dump());
      const auto count = extent.get<std::uint64_t>();
      // No tensor of a valid file is larger than the file; that also keeps the product from
      // overflowing.
      if (count > values_size() || (count > 0 && size > values_size() / count)) {
        refuse("'", name, "' of shape ", value["shape"].dump(), " is larger than the file");
      }
      size *= count;
      entry.shape.push_back(static_cast<std::int64_t>(count));
    }
    const Json& offsets = value["data_offsets"];
    if (!offsets[0].is_number_unsigned() || !offsets[1].is_number_unsigned()) {
      refuse("'", name, "' has the data_offsets ", offsets.dump());
    }
    entry.begin = offsets[0].get<std::uint64_t>();
    entry.end = offsets[1].get<std::uint64_t>();
    if (entry.begin > entry.end || entry.end > values_size()) {
      refuse("'", name, "' lies at ", offsets.dump(), ", the file has ", values_size(),
             " bytes of values");
    }
    if (entry.end - entry.begin != size) {
      refuse("'", name, "' has ", entry.end - entry.begin, " bytes, its shape needs ", size);
    }
    return entry;
  }

  torch::ScalarType parse_type(const std::string& tensor, const std::string& type) const {
    std::vector<std::string> known;
    for (const auto& [name, candidate] : type_names()) {
      if (name == type) return candidate;
      known.push_back(name);
    }
    refuse("'", tensor, "' has the type '", type, "' (known: ", join(known, ", "), ")");
  }

  void check_coverage(const std::vector<Entry>& entries) const {
    std::vector<const Entry*> in_file;
    for (const Entry& entry : entries) in_file.push_back(&entry);
    std::sort(in_file.begin(), in_file.end(), [](const Entry* a, const Entry* b) {
      return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
    });
    std::uint64_t covered = 0;
    for (const Entry* entry : in_file) {
      if (entry->begin < covered) refuse("'", entry->name, "' overlaps another tensor");
      if (entry->begin > covered) refuse("there is a gap before '", entry->name, "'");
      covered = entry->end;
    }
    if (covered != values_size()) {
      refuse("its tensors have ", covered, " bytes, the file has ", values_size());
    }
  }

  std::filesystem::path path_;
  InputFile file_;
  std::size_t header_length_ = 0;
};

}  // namespace

void write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                       const std::map<std::string, std::string>& metadata) {
  OrderedJson header = OrderedJson::object();
  if (!metadata.empty()) header[kMetadata] = metadata;
  std::uint64_t size = 0;
  for (const auto& [name, tensor] : tensors) {
    if (name == kMetadata || header.contains(name)) {
      throw std::logic_error(cat("two tensors are named '", name, "'"));
    }
    header[name] = {{"dtype", type_name(tensor.scalar_type())},
                    {"shape", tensor.sizes().vec()},
                    {"data_offsets", {size, size + tensor.nbytes()}}};
    size += tensor.nbytes();
  }
  std::string text = header.dump();
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');

  NewFile file(path);
  const std::uint64_t length = text.size();
  file.append(std::as_bytes(std::span(&length, 1)));
  file.append(text);
  for (const auto& [name, tensor] : tensors) {
    const torch::Tensor values = tensor.detach().cpu().contiguous();
    file.append({static_cast<const std::byte*>(values.const_data_ptr()), values.nbytes()});
  }
  file.commit();
}

Safetensors read_safetensors(const std::filesystem::path& path) { return Reader(path).read(); }

}  // namespace riffle
