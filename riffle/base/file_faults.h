// A seam for tests: makes the file layer (file.h) fail the way disks do.
//
//   const FileFaults faults([](FileStep step, const std::filesystem::path&) {
//     return step == FileStep::sync ? FileFault{EIO} : FileFault{};
//   });
//   ... every fsync fails until `faults` goes out of scope ...
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>

namespace riffle {

enum class FileStep { open, read, write, sync, rename, list };

struct FileFault {
  int error = 0;                // errno of the failure; 0: the step works
  std::size_t most = SIZE_MAX;  // most bytes that one read or write moves
};

// Decides about every file step of the process while it lives. Only one may exist at a time.
// `decide` is called before each step, by several threads at once; to make a step slow, let it
// wait.
class FileFaults {
 public:
  using Decide = std::function<FileFault(FileStep, const std::filesystem::path&)>;
  explicit FileFaults(Decide decide);
  ~FileFaults();
  FileFaults(const FileFaults&) = delete;
  FileFaults& operator=(const FileFaults&) = delete;

  // Called by the file layer. Returns no fault if there is no FileFaults.
  static FileFault decide(FileStep step, const std::filesystem::path& path);
};

}  // namespace riffle
