// Samples that wait on disk, in cells that are written and read one after the other from beginning
// to end: for orders of more pictures than memory holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "riffle/base/file.h"
#include "riffle/stream/stream.h"

namespace riffle {

struct KeyedSample {
  std::uint64_t key = 0;
  Sample sample;
};

// Files are made in the folder for temporary files (TMPDIR), when a cell is first written to, and
// are gone with the process, however it ends. Throws Error if the disk is full. Not thread-safe.
class SampleSpool {
 public:
  explicit SampleSpool(std::size_t cells) : cells_(cells) {}

  void append(std::size_t cell, const KeyedSample& sample);
  // Returns the samples of a cell in the order in which they came, and forgets them.
  std::vector<KeyedSample> take(std::size_t cell);

 private:
  struct Cell {
    // Not yet written.
    std::string buffer;
    std::vector<Descriptor> file;  // none, or one without a name
    std::uint64_t written = 0;
  };

  void flush(Cell& cell);

  std::vector<Cell> cells_;
};

}  // namespace riffle
