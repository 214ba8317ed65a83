// For tests: how much memory a piece of work takes.
#pragma once

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>

#include "riffle/base/file.h"

namespace riffle {

// Returns a figure of the kernel's account of this process, in bytes.
inline std::int64_t process_memory(const std::string& key) {
  const std::string status = read_text("/proc/self/status");
  const auto at = status.find(key + ":");
  return at == std::string::npos ? 0 : std::stoll(status.substr(at + key.size() + 1)) * 1024;
}

// Returns how far memory rises above where it stood while `work` is done; nothing where the kernel
// does not let the high-water mark be lowered first.
template <typename Work>
std::optional<std::int64_t> memory_rise(const Work& work) {
  std::ofstream reset("/proc/self/clear_refs");
  if (!(reset << "5" << std::flush)) return std::nullopt;
  const std::int64_t before = process_memory("VmRSS");
  work();
  return process_memory("VmHWM") - before;
}

}  // namespace riffle
