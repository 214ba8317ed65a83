#include "riffle/curate/selection.h"

#include <algorithm>
#include <ctime>
#include <fstream>
#include <iomanip>
#include <limits>
#include <optional>
#include <span>
#include <sstream>
#include <unordered_map>
#include <utility>

#include "riffle/base/csv.h"
#include "riffle/base/error.h"
#include "riffle/base/file.h"
#include "riffle/base/new_file.h"
#include "riffle/base/text.h"
#include "riffle/pages/buffer_page.h"
#include "riffle/report/html_page.h"
#include "riffle/stream/uri.h"

namespace riffle {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kFewestToCompare = 10;
constexpr std::size_t kShown = 48, kShownRepeated = 24;

// Farther than this from all others is far.
double far_distance(const std::vector<Chosen>& pictures) {
  std::vector<double> distances;
  for (const Chosen& picture : pictures) {
    if (picture.kept.count > 1) distances.push_back(picture.nearest);
  }
  if (distances.size() < kFewestToCompare) return std::numeric_limits<double>::infinity();
  const auto ninth = distances.begin() + static_cast<std::ptrdiff_t>(distances.size() * 9 / 10);
  std::ranges::nth_element(distances, ninth);
  return *ninth;
}

std::optional<Picture> small_picture(const Chosen& picture, const fs::path& folder) {
  return thumbnail(read_bytes(folder / picture.kept.file));
}

// Pictures that cannot be read any more are left out.
PictureFigure sheet(const std::string& title, const std::vector<const Chosen*>& which,
                    const std::string& caption, const fs::path& folder) {
  std::vector<Picture> pictures;
  for (const Chosen* picture : which) {
    if (auto small = small_picture(*picture, folder)) pictures.push_back(std::move(*small));
  }
  return picture_sheet(title, pictures, caption);
}

// A kept picture, and beside it some of what it stands for.
PictureFigure repeated_picture(const Chosen& picture, const SelectionPage& what) {
  std::vector<Picture> pictures;
  if (auto small = small_picture(picture, what.folder)) pictures.push_back(std::move(*small));
  for (const std::string& jpeg : what.examples.of(picture.kept.index)) {
    if (auto small = thumbnail(std::as_bytes(std::span(jpeg)))) {
      pictures.push_back(std::move(*small));
    }
  }
  const double percent =
      100.0 * static_cast<double>(picture.kept.count) / static_cast<double>(what.samples);
  PictureFigure figure = picture_sheet(
      "", pictures, cat(picture.kept.count, " pictures, ", fixed(percent, 1), " % of the stream"));
  figure.alt = cat(picture.kept.key, " and pictures that it stands for");
  return figure;
}

// Milliseconds since 1970 in UTC, such as 2026-03-01T12:00:00.250Z.
std::string utc_text(std::int64_t milliseconds) {
  const auto seconds = static_cast<std::time_t>(milliseconds / 1000);
  std::tm time{};
  ::gmtime_r(&seconds, &time);
  std::ostringstream text;
  text << std::put_time(&time, "%Y-%m-%dT%H:%M:%S.") << std::setw(3) << std::setfill('0')
       << milliseconds % 1000 << 'Z';
  return text.str();
}

std::pair<std::uint64_t, std::uint64_t> repeat_of(const std::vector<std::string>& words) {
  const auto number = [](const std::string& word) {
    return static_cast<std::uint64_t>(parse_integer(word, "a line of repeats.log"));
  };
  if (words.size() != 3) throw Error("repeats.log is damaged: a line without three words");
  return {number(words[0]), number(words[1])};
}

}  // namespace

std::vector<Chosen> chosen(Selector& selector) {
  const auto nearest = selector.nearest();
  std::vector<Chosen> pictures;
  for (const std::int64_t slot : selector.slots()) {
    pictures.push_back({selector.kept(slot), nearest[static_cast<std::size_t>(slot)], false});
  }
  const double far = far_distance(pictures);
  for (Chosen& picture : pictures) picture.alone = picture.kept.count == 1 && picture.nearest > far;
  return pictures;
}

std::string selection_csv(const std::vector<Chosen>& pictures, std::int64_t samples) {
  std::string table = "file,index,clip,label,key,time,seconds,count,share,nearest,alone\n";
  for (const Chosen& picture : pictures) {
    const Kept& kept = picture.kept;
    const double share = static_cast<double>(kept.count) / static_cast<double>(samples);
    table += cat(csv_field(kept.file), ',', kept.index, ',',
                 kept.clip == kNoClip ? "" : std::to_string(kept.clip), ',', csv_field(kept.label),
                 ',', csv_field(kept.key), ',', kept.time > 0 ? utc_text(kept.time) : "", ',',
                 kept.shown_at < 0 ? "" : fixed(static_cast<double>(kept.shown_at) / 1000, 3), ',',
                 kept.count, ',', share, ',', picture.nearest, ',', picture.alone ? 1 : 0, '\n');
  }
  return table;
}

std::string selection_page(const SelectionPage& what) {
  const auto& pictures = what.pictures;
  HtmlPage page(cat(pictures.size(), " pictures of ", what.samples),
                cat("Selected from ", what.stream, "."));
  std::vector<const Chosen*> repeated, alone, some;
  for (const Chosen& picture : pictures) {
    if (picture.alone) alone.push_back(&picture);
    if (picture.kept.count > 1) repeated.push_back(&picture);
  }
  std::ranges::stable_sort(repeated, std::greater(),
                           [](const Chosen* picture) { return picture->kept.count; });
  std::ranges::stable_sort(alone, std::greater(),
                           [](const Chosen* picture) { return picture->nearest; });
  const std::size_t shown = std::min(kShown, pictures.size());
  for (std::size_t i = 0; i < shown; ++i) {
    some.push_back(&pictures[i * pictures.size() / shown]);
  }
  page.facts({{"pictures seen", std::to_string(what.samples)},
              {"kept", std::to_string(pictures.size())},
              {"that stand for several", std::to_string(repeated.size())}});
  if (pictures.empty() || pictures.front().kept.file.empty()) return page.html();
  page.picture(sheet("A part of the selection", some, "In order of arrival.", what.folder));
  alone.resize(std::min(alone.size(), kShown));
  repeated.resize(std::min(repeated.size(), kShownRepeated));
  if (!repeated.empty()) {
    page.section("The most repeated");
    page.paragraph("Each with some of the pictures that it stands for.");
    std::vector<PictureFigure> figures;
    for (const Chosen* picture : repeated) figures.push_back(repeated_picture(*picture, what));
    page.pictures(figures);
  }
  if (!alone.empty()) {
    page.section("Those that stand alone");
    page.picture(sheet("", alone, "Nothing like them was seen: broken frames, or something rare.",
                       what.folder));
  }
  page.footer("Made by riffle curate.");
  return page.html();
}

// Whatever a picture was merged into was kept to the end or left later: from the last line to the
// first, who stood for whom is known.
void write_assignments(const fs::path& log, const std::vector<Chosen>& pictures,
                       const fs::path& table) {
  std::unordered_map<std::uint64_t, const Kept*> stands_for;
  for (const Chosen& picture : pictures) stands_for[picture.kept.index] = &picture.kept;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> repeats;
  std::string line;
  for (std::ifstream file(log); std::getline(file, line);) {
    repeats.push_back(repeat_of(split(line, ' ')));
  }
  for (auto repeat = repeats.rbegin(); repeat != repeats.rend(); ++repeat) {
    const auto found = stands_for.find(repeat->second);
    if (found == stands_for.end()) throw Error(cat(log.string(), " is damaged or incomplete"));
    stands_for[repeat->first] = found->second;
  }
  NewFile out(table);
  out.append("index,key,kept_index,kept_key\n");
  for (std::ifstream file(log); std::getline(file, line);) {
    const auto words = split(line, ' ');
    const Kept& kept = *stands_for.at(repeat_of(words).first);
    out.append(cat(words[0], ',', csv_field(decode_percent(words[2])), ',', kept.index, ',',
                   csv_field(kept.key), '\n'));
  }
  out.commit();
}

}  // namespace riffle
