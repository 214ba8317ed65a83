#include "riffle/tensors/torch_file.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <set>

#include <torch/types.h>

#include "riffle/base/error.h"
#include "riffle/base/file.h"
#include "riffle/base/text.h"
#include "riffle/tensors/pickle.h"

namespace riffle {
namespace {

using Bytes = std::span<const std::byte>;
using Kind = PickleValue::Kind;

constexpr std::string_view kZip("PK\x03\x04", 4);
// How a file of before the zip format begins: a pickle of a number.
constexpr std::string_view kBeforeZip("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19",
                                      14);
constexpr std::size_t kMostAxes = 64;  // LibTorch's own

bool begins_with(Bytes bytes, std::string_view text) {
  return bytes.size() >= text.size() && std::memcmp(bytes.data(), text.data(), text.size()) == 0;
}

template <typename Number>
Number number_at(Bytes bytes, std::uint64_t place) {
  if (place > bytes.size() || bytes.size() - place < sizeof(Number)) throw Error("it is cut off");
  Number value;
  std::memcpy(&value, bytes.data() + place, sizeof value);
  return value;
}

Bytes part_of(Bytes bytes, std::uint64_t place, std::uint64_t size) {
  if (place > bytes.size() || size > bytes.size() - place) throw Error("it is cut off");
  return bytes.subspan(place, size);
}

// Finds where the directory at the end of a zip file begins, and how many files it lists.
std::pair<std::uint64_t, std::uint64_t> zip_directory(Bytes zip) {
  constexpr std::size_t kEndBytes = 22, kLongEndBytes = 20;
  constexpr std::uint32_t kEnd = 0x06054b50, kLongEnd = 0x07064b50, kLongEndRecord = 0x06064b50;
  if (zip.size() < kEndBytes) throw Error("it is cut off");
  const std::size_t last = zip.size() - kEndBytes;
  for (std::size_t back = 0; back <= std::min<std::size_t>(last, 65535); ++back) {
    const std::size_t end = last - back;
    if (number_at<std::uint32_t>(zip, end) != kEnd) continue;
    if (end >= kLongEndBytes && number_at<std::uint32_t>(zip, end - kLongEndBytes) == kLongEnd) {
      const auto record = number_at<std::uint64_t>(zip, end - kLongEndBytes + 8);
      if (number_at<std::uint32_t>(zip, record) == kLongEndRecord) {
        return {number_at<std::uint64_t>(zip, record + 48),
                number_at<std::uint64_t>(zip, record + 32)};
      }
    }
    return {number_at<std::uint32_t>(zip, end + 16), number_at<std::uint16_t>(zip, end + 10)};
  }
  throw Error("it is a zip file that is cut off");
}

struct ZipEntry {
  std::uint64_t size = 0, packed = 0, place = 0;
};

// Numbers that do not fit into 32 bits are in an extra field, in this order.
void read_long_numbers(Bytes extra, ZipEntry& entry) {
  constexpr std::uint16_t kLong = 1;
  constexpr std::uint64_t kAbsent = 0xFFFFFFFF;
  std::uint64_t place = 0;
  while (place + 4 <= extra.size()) {
    const auto id = number_at<std::uint16_t>(extra, place);
    const auto size = number_at<std::uint16_t>(extra, place + 2);
    const Bytes field = part_of(extra, place + 4, size);
    std::uint64_t at = 0;
    for (std::uint64_t* number : {&entry.size, &entry.packed, &entry.place}) {
      if (id != kLong || *number != kAbsent) continue;
      *number = number_at<std::uint64_t>(field, at);
      at += sizeof(std::uint64_t);
    }
    place += 4u + size;
  }
}

// Returns the files of a zip archive, none of which may be packed.
std::map<std::string, Bytes> read_zip(Bytes zip) {
  constexpr std::uint32_t kEntry = 0x02014b50;
  auto [place, count] = zip_directory(zip);
  std::map<std::string, Bytes> files;
  for (; count > 0; --count) {
    if (number_at<std::uint32_t>(zip, place) != kEntry) throw Error("its directory is damaged");
    const auto method = number_at<std::uint16_t>(zip, place + 10);
    ZipEntry entry{number_at<std::uint32_t>(zip, place + 24),
                   number_at<std::uint32_t>(zip, place + 20),
                   number_at<std::uint32_t>(zip, place + 42)};
    const auto name_size = number_at<std::uint16_t>(zip, place + 28);
    const auto extra_size = number_at<std::uint16_t>(zip, place + 30);
    const auto comment_size = number_at<std::uint16_t>(zip, place + 32);
    const Bytes name = part_of(zip, place + 46, name_size);
    read_long_numbers(part_of(zip, place + 46 + name_size, extra_size), entry);
    place += 46u + name_size + extra_size + comment_size;
    if (method != 0 || entry.size != entry.packed) throw Error("it is a zip file that is packed");
    const std::uint64_t head = 30u + number_at<std::uint16_t>(zip, entry.place + 26) +
                               number_at<std::uint16_t>(zip, entry.place + 28);
    files.emplace(std::string(reinterpret_cast<const char*>(name.data()), name.size()),
                  part_of(part_of(zip, entry.place, zip.size() - entry.place), head, entry.size));
  }
  return files;
}

// The bytes of each storage, by its key.
using Storages = std::map<std::string, Bytes>;

std::optional<torch::ScalarType> storage_type(Pickled name) {
  static const std::map<std::string, torch::ScalarType> kTypes = {
      {"torch FloatStorage", torch::kFloat32}, {"torch DoubleStorage", torch::kFloat64},
      {"torch HalfStorage", torch::kFloat16},  {"torch BFloat16Storage", torch::kBFloat16},
      {"torch LongStorage", torch::kInt64},    {"torch IntStorage", torch::kInt32},
      {"torch ShortStorage", torch::kInt16},   {"torch CharStorage", torch::kInt8},
      {"torch ByteStorage", torch::kUInt8},    {"torch BoolStorage", torch::kBool}};
  const auto found = kTypes.find(name->text);
  if (name->kind != Kind::global || found == kTypes.end()) return std::nullopt;
  return found->second;
}

std::vector<std::int64_t> integers_of(Pickled sequence) {
  std::vector<std::int64_t> numbers;
  for (Pickled item : sequence->items) {
    if (item->kind != Kind::integer || item->integer < 0)
      throw Error("a tensor's shape is damaged");
    numbers.push_back(item->integer);
  }
  if (sequence->kind != Kind::sequence || numbers.size() > kMostAxes) {
    throw Error("a tensor's shape is damaged");
  }
  return numbers;
}

// A storage is named by ("storage", type, key, device, values), with a sixth for a part of one.
struct StorageName {
  torch::ScalarType type;
  std::string key;
  std::int64_t values;
};

StorageName storage_name(Pickled value) {
  const auto& parts = value->items;
  if (value->kind != Kind::persistent || parts.size() < 5 || parts[4]->kind != Kind::integer ||
      parts[4]->integer < 0) {
    throw Error("a tensor's storage is damaged");
  }
  const auto type = storage_type(parts[1]);
  if (!type) throw Error(cat("it has tensors of the type '", parts[1]->text, "'"));
  if (parts.size() > 5 && !parts[5]->items.empty()) {
    throw Error("it is of a very old PyTorch; save it again with a newer one");
  }
  return {*type, parts[2]->text, parts[4]->integer};
}

// Copies, since the bytes may lie anywhere, and takes what it copies off `room`.
at::Tensor tensor_of(const std::vector<Pickled>& arguments, const Storages& storages,
                     std::uint64_t& room) {
  if (arguments.size() < 4 || arguments[1]->kind != Kind::integer) {
    throw Error("a tensor is damaged");
  }
  const StorageName name = storage_name(arguments[0]);
  const auto shape = integers_of(arguments[2]), strides = integers_of(arguments[3]);
  const auto storage = storages.find(name.key);
  const auto each = static_cast<std::int64_t>(c10::elementSize(name.type));
  if (storage == storages.end()) throw Error(cat("storage '", name.key, "' is missing"));
  const std::int64_t held = static_cast<std::int64_t>(storage->second.size()) / each;
  if (name.values > held) throw Error(cat("storage '", name.key, "' is cut off"));
  // No value may lie outside, and none may count twice: a small file must not become a huge tensor.
  std::int64_t count = 1, last = arguments[1]->integer;
  bool fits = shape.size() == strides.size() && last >= 0;
  for (std::size_t i = 0; fits && i < shape.size(); ++i) {
    std::int64_t reach = 0;
    fits = !__builtin_mul_overflow(count, shape[i], &count) &&
           !__builtin_mul_overflow(std::max<std::int64_t>(0, shape[i] - 1), strides[i], &reach) &&
           !__builtin_add_overflow(last, reach, &last);
  }
  if (!fits || count > held || (count > 0 && last >= held)) {
    throw Error(cat("a tensor does not fit into its storage '", name.key, "'"));
  }
  if (count == 0) return torch::empty(shape, name.type);
  const std::int64_t span = last + 1 - arguments[1]->integer;
  const auto copied = static_cast<std::uint64_t>(span * each);
  if (copied > room) throw Error("its tensors share their values too often");
  room -= copied;
  const at::Tensor values = torch::empty({span}, name.type);
  std::memcpy(values.mutable_data_ptr(), storage->second.data() + arguments[1]->integer * each,
              copied);
  return values.as_strided(shape, strides).contiguous();
}

// Returns nothing for what is not a tensor.
std::optional<at::Tensor> as_tensor(Pickled value, const Storages& storages, std::uint64_t& room) {
  if (value->kind != Kind::call) return std::nullopt;
  Pickled function = value->items[0];
  const auto& arguments = value->items[1]->items;
  if (function->kind != Kind::global) return std::nullopt;
  if (function->text == "torch._utils _rebuild_tensor_v2" ||
      function->text == "torch._utils _rebuild_tensor") {
    return tensor_of(arguments, storages, room);
  }
  const bool parameter = function->text == "torch._utils _rebuild_parameter" &&
                         !arguments.empty() && arguments[0]->kind == Kind::call &&
                         arguments[0]->items[0]->text == "torch._utils _rebuild_tensor_v2";
  if (parameter) return tensor_of(arguments[0]->items[1]->items, storages, room);
  return std::nullopt;
}

NamedTensors tensors_of(const PickleValue& dictionary, const Storages& storages) {
  // Tensors may share a storage, but not so often that a small file fills the memory or takes
  // hours.
  constexpr std::uint64_t kMostTimes = 8;
  std::uint64_t room = 0;
  for (const auto& [name, bytes] : storages) room += kMostTimes * bytes.size();
  NamedTensors tensors;
  std::set<std::string> names;
  for (const auto& [key, value] : dictionary.entries) {
    if (key->kind != Kind::text) continue;
    auto tensor = as_tensor(value, storages, room);
    if (!tensor) continue;
    if (!names.insert(key->text).second) throw Error(cat("it has '", key->text, "' twice"));
    tensors.emplace_back(key->text, std::move(*tensor));
  }
  constexpr std::string_view kModule = "module.";
  if (std::ranges::all_of(tensors,
                          [&](const auto& item) { return item.first.starts_with(kModule); })) {
    for (auto& [name, tensor] : tensors) name.erase(0, kModule.size());
  }
  return tensors;
}

NamedTensors find_tensors(Pickled top, const Storages& storages) {
  if (top->kind != Kind::dictionary) throw Error("it holds no dictionary of tensors");
  NamedTensors tensors = tensors_of(*top, storages);
  for (const char* name : {"state_dict", "model", "teacher"}) {
    if (!tensors.empty()) break;
    for (const auto& [key, value] : top->entries) {
      if (key->text == name && value->kind == Kind::dictionary)
        tensors = tensors_of(*value, storages);
    }
  }
  if (tensors.empty()) {
    throw Error("it has no tensors by name, neither outermost nor as state_dict, model or teacher");
  }
  return tensors;
}

NamedTensors read_zipped(Bytes bytes) {
  const auto files = read_zip(bytes);
  constexpr std::string_view kProgram = "data.pkl";
  const auto found = std::ranges::find_if(files, [&](const auto& file) {
    return file.first == kProgram || file.first.ends_with(cat('/', kProgram));
  });
  if (found == files.end()) throw Error("it is a zip file, but not of torch.save()");
  const std::string folder = found->first.substr(0, found->first.size() - kProgram.size());
  if (const auto order = files.find(folder + "byteorder");
      order != files.end() && !begins_with(order->second, "little")) {
    throw Error("it was written by a big-endian machine");
  }
  Storages storages;
  const std::string data = folder + "data/";
  for (const auto& [name, content] : files) {
    if (name.starts_with(data)) storages.emplace(name.substr(data.size()), content);
  }
  Bytes program = found->second;
  PickleValues values;
  return find_tensors(read_pickle(program, values), storages);
}

// Several pickles: a number, a version, the machine, the value and the keys of its storages; then
// for each storage the number of its values, and these.
NamedTensors read_before_zip(Bytes bytes) {
  PickleValues before, values;
  for (int i = 0; i < 3; ++i) read_pickle(bytes, before);
  const Pickled top = read_pickle(bytes, values);
  const Pickled keys = read_pickle(bytes, before);
  std::map<std::string, StorageName> names;
  for (PickleValue& value : values) {
    if (value.kind != Kind::persistent) continue;
    const StorageName name = storage_name(&value);
    names.emplace(name.key, name);
  }
  Storages storages;
  for (Pickled key : keys->items) {
    const auto name = names.find(key->text);
    if (name == names.end()) throw Error(cat("storage '", key->text, "' is of no tensor"));
    const auto count = number_at<std::uint64_t>(bytes, 0);
    if (count != static_cast<std::uint64_t>(name->second.values)) {
      throw Error(cat("storage '", key->text, "' has another size than it claims"));
    }
    const std::uint64_t each = c10::elementSize(name->second.type);
    if (count > bytes.size() / each) throw Error("it is cut off");
    storages.emplace(key->text, part_of(bytes, sizeof count, count * each));
    bytes = bytes.subspan(sizeof count + count * each);
  }
  return find_tensors(top, storages);
}

NamedTensors read_saved(Bytes bytes, const std::filesystem::path& path) {
  try {
    if (begins_with(bytes, kZip)) return read_zipped(bytes);
    if (begins_with(bytes, kBeforeZip)) return read_before_zip(bytes);
    throw Error("it was not written by torch.save()");
  } catch (const Error& error) {
    throw Error(cat(path.string(), ": ", error.what()));
  }
}

}  // namespace

NamedTensors read_torch_file(const std::filesystem::path& path) {
  return read_saved(read_bytes(path), path);
}

Safetensors read_tensor_file(const std::filesystem::path& path) {
  const InputFile file(path);
  std::string start(std::min<std::size_t>(file.size(), kBeforeZip.size()), '\0');
  file.read(0, std::as_writable_bytes(std::span(start)));
  const auto begins = [&](std::string_view how) { return start.starts_with(how); };
  if (begins(kZip) || begins(kBeforeZip)) return {read_torch_file(path), {}};
  return read_safetensors(path);
}

}  // namespace riffle
