// What a finished pass leaves: a table of the kept pictures, a page about them, and on demand a
// table of all others.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "riffle/curate/examples.h"
#include "riffle/curate/selector.h"

namespace riffle {

struct Chosen {
  Kept kept;
  // Cosine distance to the nearest other kept picture; 2: there is none.
  double nearest = 2;
  // Whether it stands for no picture but itself, farther from all others than nine tenths of those
  // that stand for several: a broken frame, or something rare.
  bool alone = false;
};

// Returns the kept pictures in order of arrival.
std::vector<Chosen> chosen(Selector& selector);

// Returns the table as CSV: file, index, clip, label, key, time, seconds, count, share, nearest,
// alone. `time`: when a live source gave it; `seconds`: into its film; `share`: of the stream, what
// it stands for.
std::string selection_csv(const std::vector<Chosen>& pictures, std::int64_t samples);

// What the page shows.
struct SelectionPage {
  const std::vector<Chosen>& pictures;
  const Examples& examples;
  std::int64_t samples = 0;
  std::string stream;
  // Where the pictures are.
  std::filesystem::path folder;
};

// Returns a page with some of all pictures, those that stand for most beside some of what they
// stand for, and those that stand alone.
std::string selection_page(const SelectionPage& what);

// Reads the repeats of a pass, in order, and writes for each picture that was not kept which kept
// one it repeats: index, key, kept_index, kept_key. Needs memory for one number per picture of the
// stream. Throws Error if the log is damaged.
void write_assignments(const std::filesystem::path& log, const std::vector<Chosen>& pictures,
                       const std::filesystem::path& table);

}  // namespace riffle
