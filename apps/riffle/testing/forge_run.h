// For tests: run folders with content that riffle never writes, and checksums that are right.
//
// The formats are those of docs/formats/run-folder.md, written here without riffle's own code.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "apps/riffle/testing/process.h"
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "riffle/base/checksum.h"
#include "riffle/base/random.h"

namespace riffle {

inline void put_content(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

inline std::int64_t forged_integer(Random& random) {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  constexpr std::array<std::int64_t, 12> kExtremes = {
      0,     1,          -1,       2, 31, 32, 40, std::int64_t{1} << 31, std::int64_t{1} << 40,
      kMost, -kMost - 1, kMost / 8};
  return kExtremes[random.below(kExtremes.size())];
}

// Another value in place of one anywhere inside.
inline void forge_json(nlohmann::ordered_json& json, Random& random) {
  if ((json.is_object() || json.is_array()) && !json.empty() && !random.chance(0.1f)) {
    auto at = json.begin();
    std::advance(at, static_cast<std::ptrdiff_t>(random.below(json.size())));
    return forge_json(*at, random);
  }
  switch (random.below(8)) {
    case 0:
      json = nullptr;
      break;
    case 1:
      json = "\x1b[31m../../x";
      break;
    case 2:
      json = 1e300;
      break;
    case 3:
      json = nlohmann::ordered_json::array({1, "x"});
      break;
    case 4:
      json = nlohmann::ordered_json::object();
      break;
    case 5:
      json = -0.5;
      break;
    default:
      json = forged_integer(random);
  }
}

// A file of tensors in its parts.
struct ForgedTensors {
  struct Tensor {
    std::string name;
    nlohmann::ordered_json about;
    std::string bytes;
  };
  nlohmann::ordered_json metadata;
  std::vector<Tensor> tensors;

  explicit ForgedTensors(const fs::path& path) {
    const std::string all = content(path);
    std::uint64_t length = 0;
    std::memcpy(&length, all.data(), sizeof(length));
    const auto header = nlohmann::ordered_json::parse(all.substr(8, length));
    for (const auto& [name, about] : header.items()) {
      if (name == "__metadata__") {
        metadata = about;
        continue;
      }
      const std::size_t begin = about["data_offsets"][0], end = about["data_offsets"][1];
      tensors.push_back({name, about, all.substr(8 + length + begin, end - begin)});
    }
  }

  void write(const fs::path& path) const {
    nlohmann::ordered_json header;
    header["__metadata__"] = metadata;
    std::string data;
    for (const auto& tensor : tensors) {
      header[tensor.name] = tensor.about;
      header[tensor.name]["data_offsets"] = {data.size(), data.size() + tensor.bytes.size()};
      data += tensor.bytes;
    }
    const std::string text = header.dump(-1, ' ', true);
    const std::uint64_t length = text.size();
    put_content(path, std::string(reinterpret_cast<const char*>(&length), 8) + text + data);
  }
};

inline std::string forge_tensor(ForgedTensors::Tensor& tensor, Random& random) {
  const std::string kind = tensor.about["dtype"];
  auto& shape = tensor.about["shape"];
  const auto elements = [&] {
    std::int64_t all = 1;
    for (const std::int64_t side : shape) all *= side;
    return all;
  }();
  switch (random.below(6)) {
    case 0: {  // its values in another shape
      shape = random.chance(0.5f) ? nlohmann::ordered_json{elements}
                                  : nlohmann::ordered_json{1, elements, 1};
      return "another shape";
    }
    case 1: {  // half of it
      if (elements < 2) return "as it is";
      tensor.bytes.resize(tensor.bytes.size() / static_cast<std::size_t>(elements) *
                          static_cast<std::size_t>(elements / 2));
      shape = nlohmann::ordered_json::array({elements / 2});
      return "half of it";
    }
    case 2: {  // the same bytes as another type
      tensor.about["dtype"] = kind == "I64"   ? "F64"
                              : kind == "F32" ? "I32"
                              : kind == "F16" ? "BF16"
                                              : kind;
      return "another type";
    }
    case 3:
      tensor.name += "x";
      return "another name";
    default: {  // other values
      const std::size_t width = kind == "I64" ? 8 : kind == "F32" ? 4 : 1;
      for (auto left = 1 + random.below(3); left > 0 && tensor.bytes.size() >= width; --left) {
        const auto at = random.below(tensor.bytes.size() / width) * width;
        const std::int64_t value = forged_integer(random);
        const float number = random.chance(0.5f) ? std::numeric_limits<float>::quiet_NaN()
                                                 : std::numeric_limits<float>::max();
        std::memcpy(tensor.bytes.data() + at,
                    width == 4 ? static_cast<const void*>(&number) : &value, width);
      }
      return "other values";
    }
  }
}

// Puts a pipe that nobody writes to, or a link to "victim" beside the run, in the place of one of
// its files, or of one that it will have. Returns what it did.
inline std::string forge_place(const fs::path& run, const fs::path& name, bool pipe) {
  const fs::path path = run / name;
  fs::remove(path);
  if (pipe) {
    ::mkfifo(path.c_str(), 0644);
  } else {
    fs::create_symlink(fs::absolute(run.parent_path() / "victim"), path);
  }
  return name.string() + (pipe ? " is a pipe" : " is a link");
}

inline std::string forge_place(const fs::path& run, Random& random) {
  std::set<fs::path> found = {"lock", "probes.jsonl", "report.html", "buffer.html"};
  for (const auto& entry : fs::recursive_directory_iterator(run)) {
    if (entry.is_regular_file()) found.insert(entry.path().lexically_relative(run));
  }
  const std::vector<fs::path> places(found.begin(), found.end());
  return forge_place(run, places[random.below(places.size())], random.chance(0.5f));
}

// Changes the newest checkpoint, pictures, configuration or records of a run. Returns what it did.
inline std::string forge_run(const fs::path& run, Random& random) {
  fs::path manifest;
  std::vector<fs::path> segments;
  for (const auto& entry : fs::directory_iterator(run / "checkpoints")) {
    if (entry.path().extension() == ".json") manifest = std::max(manifest, entry.path());
    if (entry.path().extension() == ".bin") segments.push_back(entry.path());
  }
  std::ranges::sort(segments);
  const fs::path state = fs::path(manifest).replace_extension(".safetensors");
  auto line =
      nlohmann::ordered_json::parse(content(manifest).substr(0, content(manifest).find('\n')));
  const auto write_manifest = [&] {
    const std::string text = line.dump(-1, ' ', true);
    put_content(manifest, text + '\n' + checksum_text(checksum(text)) + '\n');
  };
  const auto write_state = [&](const ForgedTensors& tensors) {
    tensors.write(state);
    line["state"]["bytes"] = fs::file_size(state);
    line["state"]["checksum"] = checksum_text(file_checksum(state));
    write_manifest();
  };
  const auto what = random.below(10);
  if (what < 5) {
    ForgedTensors tensors(state);
    // Most tensors are weights; what says where things are is among the others.
    std::vector<std::size_t> others;
    for (std::size_t i = 0; i < tensors.tensors.size(); ++i) {
      if (tensors.tensors[i].about["dtype"] == "I64") others.push_back(i);
    }
    const auto at = random.chance(0.7f) && !others.empty() ? others[random.below(others.size())]
                                                           : random.below(tensors.tensors.size());
    const std::string name = tensors.tensors[at].name;
    const std::string how = forge_tensor(tensors.tensors[at], random);
    write_state(tensors);
    return "tensor " + name + ": " + how;
  }
  if (what == 5) {
    forge_json(line, random);
    write_manifest();
    return "manifest: " + line.dump(-1, ' ', true);
  }
  if (what == 6) {  // a record of another sample, or of other pixels, with its checksum
    const fs::path segment = segments[random.below(segments.size())];
    std::string bytes = content(segment);
    constexpr std::size_t kHeader = 32, kRecord = 16 + 16 * 16 * 3;
    const auto at = kHeader + random.below((bytes.size() - kHeader) / kRecord) * kRecord;
    const std::int64_t arrival = forged_integer(random);
    std::memcpy(bytes.data() + at, &arrival, 8);
    Checksum sum;
    sum.add(std::as_bytes(std::span(bytes)).subspan(at, 8));
    sum.add(std::as_bytes(std::span(bytes)).subspan(at + 16, kRecord - 16));
    const std::uint64_t value = sum.value();
    std::memcpy(bytes.data() + at + 8, &value, 8);
    if (random.chance(0.3f)) bytes.resize(random.below(bytes.size()));
    put_content(segment, bytes);
    return segment.filename().string() + ": a record of sample " + std::to_string(arrival);
  }
  if (what == 7) {  // the configuration, in its file and in the checkpoint
    std::vector<std::string> lines;
    std::ifstream in(run / "config.yaml");
    for (std::string text; std::getline(in, text);) lines.push_back(text);
    auto& changed = lines[random.below(lines.size())];
    constexpr std::array<const char*, 10> kValues = {
        "0", "-1", "7", "0.5", "1e300", "nan", "true", "fifo", "", "9223372036854775807"};
    changed = changed.substr(0, changed.find(':')) + ": " + kValues[random.below(kValues.size())];
    std::string text;
    for (const auto& each : lines) text += each + '\n';
    put_content(run / "config.yaml", text);
    ForgedTensors tensors(state);
    tensors.metadata["config"] = text;
    write_state(tensors);
    return "configuration: " + changed;
  }
  // A line of what is written beside checkpoints.
  constexpr std::array<const char*, 3> kRecords = {"metrics.jsonl", "status.json", "probes.jsonl"};
  const fs::path path = run / kRecords[random.below(kRecords.size())];
  std::vector<std::string> lines;
  std::ifstream in(path);
  for (std::string text; std::getline(in, text);) lines.push_back(text);
  if (lines.empty()) lines = {R"({"update":3,"linear_top1":1,"linear_top5":2,"knn_top1":3})"};
  auto& changed = random.chance(0.5f) ? lines.back() : lines[random.below(lines.size())];
  auto json = nlohmann::ordered_json::parse(changed);
  forge_json(json, random);
  changed = json.dump(-1, ' ', true);
  std::string text;
  for (const auto& each : lines) text += each + '\n';
  put_content(path, text);
  return path.filename().string() + ": " + changed;
}

}  // namespace riffle
