#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <iomanip>
#include <map>
#include <numeric>
#include <set>

#include "apps/riffle/commands.h"
#include "apps/riffle/print.h"
#include <nlohmann/json.hpp>

#include "riffle/base/csv.h"
#include "riffle/base/error.h"
#include "riffle/base/file.h"
#include "riffle/base/log.h"
#include "riffle/base/text.h"
#include "riffle/curate/originals.h"
#include "riffle/image/codec.h"
#include "riffle/pages/buffer_page.h"
#include "riffle/run/saved_buffer.h"
#include "riffle/run/trace.h"
#include "riffle/stream/stream.h"
#include "riffle/train/updater.h"

namespace riffle {
namespace {

namespace fs = std::filesystem;

constexpr int kExportQuality = 95;

struct BufferOptions {
  std::string run;
  std::string checkpoint;
  std::string out;
  std::string folder;
  std::string order = "least-redundant";
  std::size_t count = 0;
  bool originals = false;
  std::size_t shown = 48;
  std::string device;
  bool json = false;
};

std::vector<std::size_t> export_order(const SavedBuffer& buffer, const BufferOptions& options) {
  std::vector<std::size_t> order(buffer.samples().size());
  std::iota(order.begin(), order.end(), 0u);
  if (options.order == "newest") std::ranges::reverse(order);
  if (options.order == "least-redundant") {
    const auto known = by_redundancy(buffer);
    order.assign(known.rbegin(), known.rend());
  }
  if (options.count > 0) order.resize(std::min(order.size(), options.count));
  return order;
}

std::string exported_name(std::size_t place) {
  const std::string digits = std::to_string(place);
  return std::string(digits.size() < 7 ? 7 - digits.size() : 0, '0') + digits + ".jpg";
}

// Returns "2026-03-01T09:30:00.250Z"; nothing for a time that is unknown.
std::string arrival_time(std::int64_t milliseconds) {
  if (milliseconds <= 0) return "";
  const std::time_t seconds = milliseconds / 1000;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  return cat(std::put_time(&parts, "%FT%T."), std::setfill('0'), std::setw(3), milliseconds % 1000,
             'Z');
}

// What the stream still knows of exported samples.
struct Traced {
  explicit Traced(std::size_t samples) : keys(samples), files(samples) {}
  std::vector<std::string> keys;
  // Relative to the folder.
  std::vector<std::string> files;
  std::size_t count = 0;
};

// Writes the originals of the samples that the run's stream still gives.
Traced export_originals(SavedBuffer& buffer, const std::vector<std::size_t>& order,
                        const fs::path& folder) {
  std::vector<WantedOriginal> wanted;
  auto pictures = buffer.pictures(order);
  for (std::size_t i = 0; i < order.size(); ++i) {
    wanted.push_back({buffer.samples()[order[i]].info.index, std::move(pictures[i])});
  }
  Traced traced(order.size());
  const auto stream = open_with_originals(buffer.config().stream, buffer.config().shapes);
  traced.count = find_originals(*stream, wanted, [&](std::size_t i, Sample& sample) {
    const auto& content = *sample.picture.file;
    traced.keys[i] = sample.key;
    traced.files[i] = (fs::path("originals") / original_path(sample, content)).string();
    write_atomically(folder / traced.files[i], content);
  });
  return traced;
}

// Writes the pictures as JPEG files in order, and index.csv. Returns their number and that of the
// originals among them.
std::pair<std::size_t, std::size_t> export_pictures(SavedBuffer& buffer,
                                                    const BufferOptions& options) {
  constexpr std::size_t kAtOnce = 256;
  const auto order = export_order(buffer, options);
  for (std::size_t begin = 0; begin < order.size(); begin += kAtOnce) {
    const auto part = std::span(order).subspan(begin, std::min(kAtOnce, order.size() - begin));
    const auto pictures = buffer.pictures(part);
    for (std::size_t i = 0; i < part.size(); ++i) {
      write_atomically(fs::path(options.folder) / exported_name(begin + i),
                       encode_jpeg(pictures[i], kExportQuality));
    }
    show_progress(cat("exported ", begin + part.size(), " of ", order.size(), " pictures"));
  }
  finish_progress();
  Traced traced(order.size());
  if (options.originals) traced = export_originals(buffer, order, options.folder);
  std::string index = "file,index,arrival,time,clip,label,draws,nearest,weight,key,original\n";
  for (std::size_t i = 0; i < order.size(); ++i) {
    const KeptSample& sample = buffer.samples()[order[i]];
    const std::string& key = traced.keys[i].empty() ? sample.info.key : traced.keys[i];
    index += cat(exported_name(i), ',', sample.info.index, ',', sample.info.arrival, ',',
                 arrival_time(sample.info.time), ',',
                 sample.info.clip == kNoClip ? std::string() : cat(sample.info.clip), ',',
                 csv_field(sample.info.label), ',', sample.info.draws, ',',
                 std::isfinite(sample.nearest) ? cat(sample.nearest) : std::string(), ',',
                 sample.weight, ',', csv_field(key), ',', csv_field(traced.files[i]), '\n');
  }
  write_atomically(fs::path(options.folder) / "index.csv", index);
  return {order.size(), traced.count};
}

// Returns the quantiles 0, 25, ..., 100 % of some numbers, of which there is at least one.
nlohmann::ordered_json quantiles(std::vector<double> numbers) {
  std::ranges::sort(numbers);
  nlohmann::ordered_json result;
  for (const int percent : {0, 25, 50, 75, 100}) {
    const auto place =
        static_cast<std::size_t>(percent / 100.0 * static_cast<double>(numbers.size() - 1));
    result[cat(percent, '%')] = numbers[place];
  }
  return result;
}

nlohmann::ordered_json summary(const SavedBuffer& buffer) {
  std::set<std::int64_t> clips;
  std::map<std::string, std::int64_t> labels;
  for (const auto& sample : buffer.samples()) {
    if (sample.info.clip != kNoClip) clips.insert(sample.info.clip);
    if (!sample.info.label.empty()) ++labels[sample.info.label];
  }
  nlohmann::ordered_json result = {{"checkpoint", buffer.checkpoint()},
                                   {"samples", buffer.samples().size()},
                                   {"samples_seen", buffer.samples_seen()},
                                   {"clips", clips.size()},
                                   {"labels", labels},
                                   {"nearest", nullptr}};
  std::vector<double> nearest;
  std::vector<double> weights;
  for (const auto& sample : buffer.samples()) {
    if (std::isfinite(sample.nearest)) nearest.push_back(sample.nearest);
    weights.push_back(sample.weight);
  }
  if (!nearest.empty()) {
    result["nearest"] = {{"samples", nearest.size()}};
    result["nearest"].update(quantiles(std::move(nearest)));
  }
  if (!weights.empty()) result["weight"] = quantiles(std::move(weights));
  return result;
}

void print_summary(const nlohmann::ordered_json& result) {
  const auto line = [](const std::string& name, const std::string& value) {
    print_line(cat(name, std::string(18 - name.size(), ' '), value));
  };
  line("checkpoint", result["checkpoint"]);
  line("samples", cat(result["samples"], " of ", result["samples_seen"], " seen"));
  line("clips", cat(result["clips"]));
  line("labels", cat(result["labels"].size()));
  if (!result["nearest"].is_null()) {
    const auto value = [&](const char* key) { return fixed(result["nearest"][key], 4); };
    line("nearest distance", cat("least ", value("0%"), ", median ", value("50%"), ", most ",
                                 value("100%"), " (of ", result["nearest"]["samples"], ")"));
  }
  if (result.contains("weight") && result["weight"]["100%"] > result["weight"]["0%"]) {
    const auto value = [&](const char* key) { return fixed(result["weight"][key], 1); };
    line("weight", cat("least ", value("0%"), ", median ", value("50%"), ", most ", value("100%"),
                       " samples of the stream"));
  }
  line("page", result["page"]);
  if (result.contains("exported")) {
    line("pictures", cat(result["exported"], " in ", result["folder"].get<std::string>()));
    if (result.contains("originals")) line("originals", cat(result["originals"]));
  }
}

void run_buffer(const BufferOptions& options) {
  const auto folder = RunFolder::open(options.run);
  if (!options.folder.empty() && fs::exists(fs::path(options.folder) / "index.csv")) {
    throw Error(cat(options.folder, " holds an export already; give another folder"));
  }
  SavedBuffer buffer(folder, options.checkpoint);
  const auto& device = options.device.empty() ? buffer.config().learner.device : options.device;
  buffer.measure_nearest(open_device(device));
  const fs::path page = options.out.empty() ? folder.buffer_page() : fs::path(options.out);
  const std::string name = fs::weakly_canonical(folder.path()).filename().string();
  write_atomically(page, buffer_page(buffer, name, options.shown));
  auto result = summary(buffer);
  result["page"] = page.string();
  if (!options.folder.empty()) {
    const auto [exported, originals] = export_pictures(buffer, options);
    result["exported"] = exported;
    if (options.originals) result["originals"] = originals;
    result["folder"] = options.folder;
  }
  if (options.json) {
    print_json_line(result);
  } else {
    print_summary(result);
  }
}

}  // namespace

void add_buffer_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("buffer", "Look at what a run's buffer holds, and take the pictures out");
  const auto options = std::make_shared<BufferOptions>();
  command->add_option("RUN", options->run, "Run folder")->required();
  command
      ->add_option("--checkpoint", options->checkpoint,
                   "Checkpoint, such as update-000000200, or its file; default: the newest")
      ->option_text("NAME");
  command->add_option("--out", options->out, "Where to write the page; default: RUN/buffer.html")
      ->option_text("FILE");
  command->add_option("--shown", options->shown, "Pictures on each contact sheet")
      ->check(CLI::Range(1, 10000))
      ->option_text("N [48]");
  CLI::Option* exported =
      command
          ->add_option("--export", options->folder,
                       "Write the pictures as JPEG files into this folder, with an index.csv")
          ->option_text("DIR");
  command
      ->add_flag("--originals", options->originals,
                 "With --export: read the run's stream again, and write the originals that it "
                 "still gives too, and their files in index.csv")
      ->needs(exported);
  command->add_option("--count", options->count, "Export at most N pictures; 0: all")
      ->check(CLI::Range(std::int64_t{0}, kMostSamples))
      ->needs(exported)
      ->option_text("N [0]");
  command
      ->add_option(
          "--order", options->order,
          "Which pictures are exported first: least-redundant (only those with a feature), newest "
          "or oldest")
      ->check(CLI::IsMember({"least-redundant", "newest", "oldest"}))
      ->needs(exported)
      ->option_text("ORDER [least-redundant]");
  command
      ->add_option("--device", options->device,
                   "Where to compare features: cpu, cuda or cuda:N; default: the run's")
      ->option_text("NAME");
  command->add_flag("--json", options->json, "Print the result as one JSON object");
  command->footer(
      "Example, a short run and the hundred least redundant pictures of its buffer:\n"
      "  riffle train --run runs/first --size 32 --stem small --width 16 --capacity 256 \\\n"
      "               --batch 32 --max-updates 20\n"
      "  riffle buffer runs/first --export kept --count 100");
  command->callback([options] { run_buffer(*options); });
}

}  // namespace riffle
