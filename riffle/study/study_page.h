// What a study leaves in its folder: NAME.html, a page for itself, with the tables, figures,
// commands and configurations; NAME.json and NAME-1.csv, NAME-2.csv, ... with the same tables; and
// NAME-figure-1.svg, NAME-figure-2.svg, ... with the charts, in the page's order.
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

// Writes them, with the results that other processes have left in `out` meanwhile: of several that
// share it, the last one to come here shows all. `command` is the one that makes this study, for
// the reader to repeat; `page` is the page's file name, NAME.html if it is empty.
StudyFiles write_study(StudyOutcome outcome, const std::filesystem::path& out,
                       const std::string& command, const std::string& page = "");

}  // namespace riffle
