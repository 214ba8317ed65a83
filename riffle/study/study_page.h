// What a study leaves in its folder: NAME.html, a page for itself, with the tables, figures,
// commands and configurations; NAME.json and NAME-1.csv, NAME-2.csv, ... with the same tables.
#pragma once

#include <filesystem>
#include <string>

#include "riffle/study/study_runner.h"

namespace riffle {

struct StudyFiles {
  std::filesystem::path page;
  std::filesystem::path json;
  std::vector<std::filesystem::path> tables;
};

// `command`: the one that makes this study, for the reader to repeat.
StudyFiles write_study(const StudyOutcome& outcome, const std::filesystem::path& out,
                       const std::string& command);

// Processor, cores, graphics cards: as far as the system tells.
std::string machine_text();

}  // namespace riffle
