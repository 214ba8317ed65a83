#include "riffle/study/study_page.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <thread>

#include <nlohmann/json.hpp>

#include "riffle/base/file.h"
#include "riffle/base/file_lock.h"
#include "riffle/base/text.h"
#include "riffle/report/html_page.h"
#include "riffle/report/style.h"
#include "riffle/study/study_tables.h"

namespace riffle {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::ordered_json;

// What stands behind the first line that begins with `key` and a colon.
std::string system_line(const fs::path& path, const std::string& key) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    const auto colon = line.find(':');
    if (!line.starts_with(key) || colon == std::string::npos) continue;
    const auto begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return {};
}

Json cell_json(const Cell& cell) {
  if (!cell.text.empty()) return cell.text;
  if (!std::isfinite(cell.value)) return nullptr;
  if (!std::isfinite(cell.spread)) return cell.value;
  return {{"mean", cell.value}, {"spread", cell.spread}};
}

Json table_json(const Shown& shown, const Table& table) {
  Json columns = Json::array();
  for (const auto& column : table.columns) {
    columns.push_back(column.unit.empty() ? column.name : cat(column.name, " (", column.unit, ")"));
  }
  Json rows = Json::array();
  for (const auto& row : table.rows) {
    Json cells = Json::array();
    for (const auto& cell : row.cells) cells.push_back(cell_json(cell));
    rows.push_back(cells);
  }
  return {{"title", shown.title}, {"columns", columns}, {"rows", rows}};
}

double total_seconds(const StudyOutcome& outcome) {
  double seconds = 0;
  for (const auto& result : outcome.results) {
    if (!result) continue;
    const auto found = result->values.find("seconds");
    if (found != result->values.end() && std::isfinite(found->second)) seconds += found->second;
  }
  return seconds;
}

Table runs_table(const StudyOutcome& outcome) {
  Table table;
  table.columns = {{"run"},
                   {"updates", "", Best::none, true},
                   {"linear top-1", "%", Best::none, true},
                   {"collapse gauge", "", Best::none, true},
                   {"training", "s", Best::none, true},
                   {"speed", "images/s", Best::none, true}};
  for (std::size_t i = 0; i < outcome.runs.size(); ++i) {
    const auto& result = outcome.results[i];
    if (!result) continue;
    Row row{{Cell::words(outcome.runs[i].slug)}};
    const auto value = [&](const char* name, int decimals) {
      return Cell::number(result->values.at(name), decimals);
    };
    row.cells.push_back(value("updates", 0));
    const auto& set = outcome.study.probe.sets.front().name;
    row.cells.push_back(Cell::number(result->points.back().accuracy.at(set).linear_top1));
    row.cells.push_back(value("std", 3));
    row.cells.push_back(value("seconds", 1));
    row.cells.push_back(value("images_per_s", 0));
    table.rows.push_back(std::move(row));
  }
  return table;
}

// "12", or "9 of 12" while some are missing.
std::string runs_text(const StudyOutcome& outcome) {
  const std::size_t done = outcome.done();
  const std::size_t all = outcome.runs.size();
  return done == all ? std::to_string(all) : cat(done, " of ", all);
}

void add_recipes(HtmlPage& page, const StudyOutcome& outcome) {
  for (const auto& result : outcome.results) {
    if (!result) continue;
    for (const auto& [set, recipe] : result->recipes) {
      page.paragraph(cat("Probe on ", set, ": ", recipe));
    }
    return;
  }
}

}  // namespace

std::string machine_text() {
  std::string text = system_line("/proc/cpuinfo", "model name");
  if (text.empty()) text = "unknown processor";
  text += cat(", ", std::max(1u, std::thread::hardware_concurrency()), " cores");
  std::error_code none;
  for (const auto& card : fs::directory_iterator("/proc/driver/nvidia/gpus", none)) {
    text += cat(", ", system_line(card.path() / "information", "Model"));
  }
  return text;
}

StudyFiles write_study(StudyOutcome outcome, const fs::path& out, const std::string& command) {
  make_folders(out);
  const FileLock lock(out / "pages.lock", out.string(), IfTaken::wait);
  add_finished(outcome, out);
  const Study& study = outcome.study;
  StudyFiles files{out / (study.name + ".html"), out / (study.name + ".json"), {}, {}};
  HtmlPage page(study.title, study.question);
  for (const auto& [slug, why] : outcome.failed) page.note(cat(slug, " failed: ", why));
  const std::string done = runs_text(outcome);
  if (outcome.done() < outcome.runs.size()) {
    page.note(cat("Not all there yet: ", done, " runs. The command below makes the others."));
  }
  page.facts({{"scale", study.scale},
              {"runs", done},
              {"seeds", std::to_string(study.seeds)},
              {"training in all", duration_text(total_seconds(outcome))}});
  if (!study.paper.empty()) page.paragraph(cat("In the paper: ", study.paper));
  if (!study.about.empty()) page.paragraph(cat("At this scale: ", study.about));
  page.paragraph(
      "Values are means over the runs, with their standard deviation behind \u00b1 where there are "
      "several. Columns marked \"paper\" have the paper's own numbers, of its data and networks.");

  Json tables = Json::array();
  Json drawn = Json::array();
  for (const auto& shown : study.shows) {
    page.section(shown.title);
    if (shown.kind == Shown::Kind::lines) {
      const auto figures = study_figures(outcome, shown, out);
      page.figures(figures);
      for (const auto& figure : figures) {
        files.figures.push_back(out /
                                cat(study.name, "-figure-", files.figures.size() + 1, ".svg"));
        write_atomically(files.figures.back(), standalone_svg(figure.svg));
        drawn.push_back({{"file", files.figures.back().filename().string()},
                         {"title", shown.title},
                         {"panel", figure.title}});
      }
      if (!shown.panel.empty() && !shown.caption.empty()) page.paragraph(shown.caption);
      continue;
    }
    const Table table = study_table(outcome, shown);
    page.table(table);
    tables.push_back(table_json(shown, table));
    files.tables.push_back(out / cat(study.name, '-', files.tables.size() + 1, ".csv"));
    write_atomically(files.tables.back(), table_csv(table));
  }
  add_recipes(page, outcome);

  page.section("Every run");
  page.table(runs_table(outcome));
  page.section("How to get this page");
  page.code(command);
  page.paragraph(cat("Machine: ", machine_text(), "."));
  page.folded_code("The study", read_text(study.file));
  for (const auto& run : outcome.runs) {
    if (run.seed != 0) continue;
    page.folded_code(cat("Everything that ", run.slug, " used"), config_yaml(run.config));
  }
  page.footer("Made by riffle study.");
  write_atomically(files.page, page.html());

  Json runs = Json::array();
  for (std::size_t i = 0; i < outcome.runs.size(); ++i) {
    const auto& run = outcome.runs[i];
    Json values = nullptr;
    if (outcome.results[i]) values = outcome.results[i]->values;
    runs.push_back({{"run", run.slug}, {"at", run.at}, {"seed", run.seed}, {"values", values}});
  }
  const Json json = {{"study", study.name}, {"scale", study.scale}, {"command", command},
                     {"tables", tables},    {"figures", drawn},     {"machine", machine_text()},
                     {"runs", runs}};
  write_atomically(files.json, json.dump(2) + '\n');
  return files;
}

}  // namespace riffle
