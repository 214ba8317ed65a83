// What a study leaves in its folder: NAME.html, a page for itself, with the tables, figures,
// commands and configurations; NAME.json and NAME-1.csv, NAME-2.csv, ... with the same tables; and
// NAME-figure-1.svg, NAME-figure-2.svg, ... with the figures as pictures, in the page's order.
#pragma once

#include <filesystem>
#include <string>

#include "riffle/study/study_runner.h"

namespace riffle {

struct StudyFiles {
  std::filesystem::path page;
  std::filesystem::path json;
  std::vector<std::filesystem::path> tables;
  std::vector<std::filesystem::path> figures;
};

// With the results that others have left in `out` meanwhile: of several processes that share it,
// the last one to come here shows all. `command`: the one that makes this study, for the reader to
// repeat.
StudyFiles write_study(StudyOutcome outcome, const std::filesystem::path& out,
                       const std::string& command);

// Processor, cores, graphics cards: as far as the system tells.
std::string machine_text();

}  // namespace riffle
