#include <algorithm>
#include <array>
#include <atomic>
#include <memory>

#include "apps/riffle/commands.h"
#include "apps/riffle/print.h"
#include <nlohmann/json.hpp>

#include "riffle/base/error.h"
#include "riffle/base/file.h"
#include "riffle/base/log.h"
#include "riffle/base/random.h"
#include "riffle/base/text.h"
#include "riffle/image/codec.h"
#include "riffle/image/contact_sheet.h"
#include "riffle/run/stop_signals.h"
#include "riffle/stream/survey.h"

namespace riffle {
namespace {

constexpr int kSheetColumns = 12;

struct StreamOptions {
  std::string uri;
  std::string shapes;
  std::string sheet = "contact.png";
  SurveyOptions survey;
  bool json = false;
};

std::string percent(double share) { return cat(fixed(100 * share, 2), " %"); }

std::string range(int least, int most) {
  return least == most ? cat(least) : cat(least, " to ", most);
}

// "20 (cat 64, dog 61, ...)": how many there are and the most frequent.
std::string labels_text(const std::map<std::string, std::int64_t>& labels) {
  constexpr std::size_t kNamed = 5;
  if (labels.empty()) return "none";
  std::vector<std::pair<std::string, std::int64_t>> sorted(labels.begin(), labels.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> named;
  for (std::size_t i = 0; i < std::min(kNamed, sorted.size()); ++i) {
    named.push_back(cat(sorted[i].first, ' ', sorted[i].second));
  }
  if (sorted.size() > kNamed) named.push_back("...");
  return cat(labels.size(), " (", join(named, ", "), ")");
}

std::string skipped_text(const std::map<std::string, std::int64_t>& skipped) {
  std::vector<std::string> parts;
  for (const auto& [reason, count] : skipped) parts.push_back(cat(count, ' ', reason));
  return parts.empty() ? "none" : join(parts, ", ");
}

void print_text(const Survey& survey, const StreamOptions& options, bool has_sheet) {
  const auto line = [](const std::string& name, const std::string& value) {
    print_line(cat(name, std::string(name.size() < 17 ? 17 - name.size() : 1, ' '), value));
  };
  line("samples", cat(survey.samples, " in ", duration_text(survey.seconds), ", ",
                      fixed(survey.frames_per_s(), 0), " frames/s"));
  line("size", cat(range(survey.least_width, survey.most_width), " x ",
                   range(survey.least_height, survey.most_height)));
  line("labels", labels_text(survey.labels));
  line("clips", survey.clips == 0 ? "none: every picture stands alone" : cat(survey.clips));
  line("skipped", skipped_text(survey.skipped));
  if (survey.clips > 0) {
    line("same-clip pairs",
         cat(percent(survey.same_clip_pairs), " in batches of ",
             std::min(options.survey.batch, survey.samples), "; formula ",
             percent(survey.expected_pairs), ", as ", percent(survey.same_clip_neighbours),
             " of neighbours share a clip"));
  }
  if (has_sheet) line("contact sheet", options.sheet);
}

void print_json(const Survey& survey, const StreamOptions& options, bool has_sheet) {
  nlohmann::ordered_json result = {
      {"samples", survey.samples},
      {"frames_per_s", survey.frames_per_s()},
      {"clips", survey.clips},
      {"labels", survey.labels.size()},
      {"skipped", survey.skipped},
      {"same_clip_pairs", survey.same_clip_pairs},
      {"same_clip_pairs_formula", survey.expected_pairs},
      {"same_clip_neighbours", survey.same_clip_neighbours},
      {"width", {survey.least_width, survey.most_width}},
      {"height", {survey.least_height, survey.most_height}},
      {"contact_sheet", nullptr},
  };
  if (has_sheet) result["contact_sheet"] = options.sheet;
  print_json_line(result);
}

// A colour for each clip, so that neighbours differ.
std::array<std::uint8_t, 3> clip_colour(std::int64_t clip) {
  if (clip == kNoClip) return {200, 200, 200};
  Random random(0, Purpose("clip colour"), static_cast<std::uint64_t>(clip));
  const auto level = [&] { return static_cast<std::uint8_t>(80 + random.below(176)); };
  return {level(), level(), level()};
}

// Pictures in reading order. The bar at the foot of each grows with time and has its clip's colour.
Picture time_sheet(const Survey& survey, int cell) {
  constexpr int kBarHeight = 5;
  std::vector<Picture> pictures;
  for (const auto& shown : survey.shown) {
    Picture picture = shown.picture;
    const auto colour = clip_colour(shown.clip);
    const auto filled =
        static_cast<int>((shown.number + 1) * static_cast<std::uint64_t>(picture.width) /
                         static_cast<std::uint64_t>(survey.samples));
    for (int y = picture.height - kBarHeight; y < picture.height; ++y) {
      for (int x = 0; x < picture.width; ++x) {
        for (std::size_t c = 0; c < colour.size(); ++c) {
          picture.at(x, y)[c] = x <= filled ? colour[c] : 0;
        }
      }
    }
    pictures.push_back(std::move(picture));
  }
  return contact_sheet(pictures, kSheetColumns, cell);
}

void run_stream(const StreamOptions& options) {
  if (!options.sheet.empty() && !options.sheet.ends_with(".png")) {
    throw Error(cat("--sheet ", options.sheet, ": the contact sheet is a .png"));
  }
  const auto stream = open_stream(options.uri, options.shapes);
  // A camera may never give as many samples as asked for: Ctrl-C shows what came.
  std::atomic<bool> stopped = false;
  const StopSignals signals(
      [&](const char*) {
        stopped = true;
        stream->stop();
      },
      0);
  const auto show = [&](const Survey& so_far) {
    show_progress(cat(so_far.samples, " of ", options.survey.samples, " samples, ",
                      fixed(so_far.frames_per_s(), 0), " frames/s"));
  };
  const Survey survey =
      survey_stream(*stream, options.survey, show, [&] { return stopped.load(); });
  finish_progress();
  const bool has_sheet = !options.sheet.empty() && !survey.shown.empty();
  if (has_sheet) {
    write_atomically(options.sheet, encode_png(time_sheet(survey, options.survey.shown_size)));
  }
  if (options.json) {
    print_json(survey, options, has_sheet);
  } else {
    print_text(survey, options, has_sheet);
  }
}

}  // namespace

void add_stream_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("stream", "Look at a stream: rate, contents, correlation, contact sheet");
  const auto options = std::make_shared<StreamOptions>();
  command->add_option("URI", options->uri, "The stream, such as folder:/data/photos or synthetic:")
      ->required();
  command
      ->add_option("--shape", options->shapes,
                   "A shape around the stream; repeatable, innermost first")
      ->join(',')
      ->option_text("NAME:key=value,...");
  command
      ->add_option("--samples", options->survey.samples,
                   "Read at most N samples; Ctrl-C shows what came so far")
      ->check(CLI::Range(std::int64_t{1}, kMostSamples))
      ->option_text("N [1000]");
  command
      ->add_option("--batch", options->survey.batch,
                   "Consecutive samples that pairs are counted in")
      ->check(CLI::Range(std::int64_t{2}, kMostSamples))
      ->option_text("N [256]");
  command
      ->add_option(
          "--sheet", options->sheet,
          "Where to write the contact sheet, a PNG; '' for none. Pictures are in order of time; "
          "the bar under each grows with time and has the colour of its clip")
      ->option_text("FILE [contact.png]");
  command->add_flag("--json", options->json, "Print the result as one JSON object");
  command->footer(
      "Examples\n  What a learner would see of a folder of photographs:\n"
      "    riffle stream 'folder:photos?order=time' --samples 2000 --sheet photos.png\n"
      "  The same as clips of 16 frames:\n"
      "    riffle stream folder:photos --shape clips:length=16 --shape limit:samples=5000");
  command->callback([options] { run_stream(*options); });
}

}  // namespace riffle
