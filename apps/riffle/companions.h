// Programs beside a command that trains: the page of `riffle watch`, and probes.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "riffle/base/child_process.h"
#include "riffle/base/file.h"
#include "riffle/dist/ranks.h"

namespace riffle {

// Starts the page of the folder that the run is in; null unless `asked`, and on ranks other than
// the first. The page ends with the object. If it cannot be served or is killed, training does not
// notice.
inline std::unique_ptr<ChildProcess> watch_child(const std::string& run, bool asked) {
  if (!asked || !is_first_process()) return nullptr;
  const auto folder =
      std::filesystem::weakly_canonical(std::filesystem::absolute(run)).parent_path();
  make_folders(folder);
  return std::make_unique<ChildProcess>(
      std::vector<std::string>{"/proc/self/exe", "watch", folder.string(), "--with-input"},
      ChildErrors::inherited, launcher_variables());
}

inline constexpr const char* kWatchHelp =
    "Serve a page about the run and its neighbours on this machine, as riffle watch does";

// Returns what `riffle probe` begins with, for TrainingOptions.
inline std::vector<std::string> probe_program() {
  return {std::filesystem::read_symlink("/proc/self/exe").string(), "-q", "probe"};
}

}  // namespace riffle
