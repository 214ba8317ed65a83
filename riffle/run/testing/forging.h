// Checkpoints for tests with content that riffle never writes, and checksums that are right.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "riffle/base/checksum.h"
#include "riffle/base/file.h"
#include "riffle/base/text.h"
#include "riffle/run/checkpoint.h"
#include "riffle/run/run_folder.h"
#include "riffle/tensors/safetensors.h"

namespace riffle {

// Changes the tensors of a checkpoint's state file, and what else it says.
inline void forge_state(
    const RunFolder& folder, const std::string& checkpoint,
    const std::function<void(NamedTensors&)>& change,
    const std::function<void(std::map<std::string, std::string>&)>& change_metadata = {}) {
  const auto state = folder.state_file(checkpoint);
  auto file = read_safetensors(state);
  change(file.tensors);
  if (change_metadata) change_metadata(file.metadata);
  write_safetensors(state, file.tensors, file.metadata);
  Manifest manifest = read_manifest(folder.manifest(checkpoint));
  manifest.bytes = std::filesystem::file_size(state);
  manifest.checksum = checksum_text(file_checksum(state));
  write_manifest(folder.manifest(checkpoint), manifest);
}

// Replaces a tensor of whole numbers.
inline void forge_integers(const RunFolder& folder, const std::string& checkpoint,
                           const std::string& tensor,
                           const std::function<void(std::vector<std::int64_t>&)>& change) {
  forge_state(folder, checkpoint, [&](NamedTensors& tensors) {
    auto values = find_integers(tensors, tensor);
    change(values);
    for (auto& [name, value] : tensors) {
      if (name == tensor) value = integers_tensor(values);
    }
  });
}

// Replaces the content of a checkpoint's manifest.
inline void forge_manifest(const RunFolder& folder, const std::string& checkpoint,
                           const std::string& line) {
  write_atomically(folder.manifest(checkpoint),
                   cat(line, '\n', checksum_text(checksum(line)), '\n'));
}

}  // namespace riffle
