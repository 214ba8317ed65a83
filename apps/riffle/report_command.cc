#include <filesystem>

#include "apps/riffle/commands.h"
#include "apps/riffle/print.h"
#include <nlohmann/json.hpp>

#include "riffle/base/file.h"
#include "riffle/pages/run_page.h"
#include "riffle/run/run_folder.h"

namespace riffle {
namespace {

struct ReportOptions {
  std::vector<std::filesystem::path> runs;
  std::string out;
  bool json = false;
};

void run_report(const ReportOptions& options) {
  std::filesystem::path out = options.out;
  if (out.empty()) {
    out = options.runs.size() == 1 ? RunFolder::open(options.runs[0]).report()
                                   : std::filesystem::path(RunFolder::kReport);
  }
  write_atomically(out, run_page(options.runs));
  if (options.json) {
    std::vector<std::string> runs(options.runs.begin(), options.runs.end());
    print_json_line(nlohmann::ordered_json{{"report", out.string()}, {"runs", runs}});
  } else {
    print_line(out.string());
  }
}

}  // namespace

void add_report_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("report", "One HTML page about one run or several");
  const auto options = std::make_shared<ReportOptions>();
  command->add_option("RUN", options->runs, "Run folders; the runs may still be in progress")
      ->required();
  command
      ->add_option("--out", options->out,
                   "Where to write the page; default: report.html, for a single run in its folder")
      ->option_text("FILE");
  command->add_flag("--json", options->json, "Print the result as one JSON object");
  command->footer(
      "Example, two buffers side by side:\n"
      "  for buffer in fifo minred; do\n"
      "    riffle train --run runs/$buffer --buffer $buffer --size 32 --stem small --width 16 \\\n"
      "                 --capacity 256 --batch 32 --max-updates 200\n"
      "  done\n"
      "  riffle report runs/fifo runs/minred");
  command->callback([options] { run_report(*options); });
}

}  // namespace riffle
