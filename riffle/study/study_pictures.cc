#include "riffle/study/study_pictures.h"

#include <set>

#include "riffle/base/text.h"
#include "riffle/pages/buffer_page.h"
#include "riffle/run/run_folder.h"
#include "riffle/stream/stream.h"
#include "riffle/study/study_places.h"

namespace riffle {
namespace {

constexpr std::size_t kOfTheStream = 60;
constexpr std::size_t kOfABuffer = 48;

PictureFigure stream_sheet(const StudyRun& run, std::int64_t every) {
  const auto stream = open_stream(run.config.stream, run.config.shapes);
  std::vector<Picture> pictures;
  for (std::int64_t i = 0; pictures.size() < kOfTheStream; ++i) {
    auto sample = stream->next();
    if (!sample) break;
    if (i % every == 0) pictures.push_back(std::move(sample->picture));
  }
  return picture_sheet("The stream", pictures,
                       cat("One of every ", every, " samples, in order, from ", run.config.stream));
}

std::size_t distinct_clips(const SavedBuffer& buffer) {
  std::set<std::int64_t> clips;
  for (const auto& sample : buffer.samples()) clips.insert(sample.info.clip);
  return clips.size();
}

}  // namespace

std::vector<PictureFigure> study_pictures(const StudyOutcome& outcome, const Shown& shown,
                                          const std::filesystem::path& out) {
  std::vector<PictureFigure> sheets;
  for (const auto& place : places(outcome, shown.where, shown.rows)) {
    const StudyRun& run = outcome.runs[runs_at(outcome, shown.where, place).front()];
    if (shown.every > 0 && sheets.empty()) sheets.push_back(stream_sheet(run, shown.every));
    if (run.config.learner.buffer.is_none()) continue;
    std::vector<std::string> titles;
    for (const auto& axis : shown.rows) {
      titles.push_back(value_title(outcome.study, axis, place.at(axis)));
    }
    SavedBuffer buffer(RunFolder::open(run_folder_of(out, run)));
    sheets.push_back(spaced_sheet(buffer, join(titles, ", "), kOfABuffer,
                                  cat(distinct_clips(buffer), " clips in ", buffer.samples().size(),
                                      " samples, of which some, evenly spaced, oldest first.")));
  }
  return sheets;
}

}  // namespace riffle
