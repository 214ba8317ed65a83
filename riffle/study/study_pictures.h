// The pictures that a study asks for: what came by, and what each buffer held of it at the end.
#pragma once

#include <filesystem>
#include <vector>

#include "riffle/report/html_page.h"
#include "riffle/study/study_runner.h"

namespace riffle {

// Returns a contact sheet of the stream, if `shown` asks for one, and one for each row: of its
// first run that is done and has a buffer.
std::vector<PictureFigure> study_pictures(const StudyOutcome& outcome, const Shown& shown,
                                          const std::filesystem::path& out);

}  // namespace riffle
