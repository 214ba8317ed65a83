#include "riffle/curate/selection.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <unordered_map>
#include <utility>

#include "riffle/base/csv.h"
#include "riffle/base/error.h"
#include "riffle/base/file.h"
#include "riffle/base/new_file.h"
#include "riffle/base/text.h"
#include "riffle/image/resize.h"
#include "riffle/pages/buffer_page.h"
#include "riffle/report/html_page.h"
#include "riffle/stream/decoding.h"
#include "riffle/stream/uri.h"

namespace riffle {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kFewestToCompare = 10;
constexpr std::size_t kShown = 48;
constexpr int kThumbnail = 72;

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

// Pictures that cannot be read any more are left out.
PictureFigure sheet(const std::string& title, const std::vector<const Chosen*>& which,
                    const std::string& caption, const fs::path& folder) {
  std::vector<Picture> pictures;
  for (const Chosen* picture : which) {
    const Decoding small{.options = {.short_side = kThumbnail}};
    auto decoded = decode(read_bytes(folder / picture->kept.file), small);
    if (decoded.picture) pictures.push_back(fit_square(std::move(*decoded.picture), kThumbnail));
  }
  return picture_sheet(title, pictures, caption);
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
  std::string table = "file,index,clip,label,key,count,share,nearest,alone\n";
  for (const Chosen& picture : pictures) {
    const Kept& kept = picture.kept;
    const double share = static_cast<double>(kept.count) / static_cast<double>(samples);
    table += cat(csv_field(kept.file), ',', kept.index, ',',
                 kept.clip == kNoClip ? "" : std::to_string(kept.clip), ',', csv_field(kept.label),
                 ',', csv_field(kept.key), ',', kept.count, ',', share, ',', picture.nearest, ',',
                 picture.alone ? 1 : 0, '\n');
  }
  return table;
}

std::string selection_page(const std::vector<Chosen>& pictures, std::int64_t samples,
                           const std::string& stream, const fs::path& folder) {
  HtmlPage page(cat(pictures.size(), " pictures of ", samples), cat("Selected from ", stream, "."));
  std::vector<const Chosen*> by_count, alone, some;
  std::int64_t repeated = 0;
  for (const Chosen& picture : pictures) {
    by_count.push_back(&picture);
    if (picture.alone) alone.push_back(&picture);
    if (picture.kept.count > 1) ++repeated;
  }
  std::ranges::stable_sort(by_count, std::greater(),
                           [](const Chosen* picture) { return picture->kept.count; });
  std::ranges::stable_sort(alone, std::greater(),
                           [](const Chosen* picture) { return picture->nearest; });
  const std::size_t shown = std::min(kShown, pictures.size());
  for (std::size_t i = 0; i < shown; ++i) {
    some.push_back(&pictures[i * pictures.size() / shown]);
  }
  std::int64_t top = 0;
  by_count.resize(shown);
  for (const Chosen* picture : by_count) top += picture->kept.count;
  alone.resize(std::min(alone.size(), kShown));
  const auto percent = 100.0 * static_cast<double>(top) / static_cast<double>(samples);
  page.facts({{"pictures seen", std::to_string(samples)},
              {"kept", std::to_string(pictures.size())},
              {"that stand for several", std::to_string(repeated)}});
  if (pictures.empty() || pictures.front().kept.file.empty()) return page.html();
  page.picture(sheet("A part of the selection", some, "In order of arrival.", folder));
  page.picture(sheet("The most repeated", by_count,
                     cat("These ", shown, " stand for ", fixed(percent, 1), " % of the stream."),
                     folder));
  if (!alone.empty()) {
    page.picture(sheet("Those that stand alone", alone,
                       "Nothing like them was seen: broken frames, or something rare.", folder));
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
