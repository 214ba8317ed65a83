#include "riffle/study/study_page.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <nlohmann/json.hpp>

#include "riffle/base/file.h"
#include "riffle/base/file_lock.h"
#include "riffle/base/text.h"
#include "riffle/report/html_page.h"
#include "riffle/report/style.h"
#include "riffle/run/yaml.h"
#include "riffle/study/study_figures.h"
#include "riffle/study/study_findings.h"
#include "riffle/study/study_pictures.h"
#include "riffle/study/study_tables.h"

namespace riffle {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::ordered_json;

// Returns the machines that the runs were made on, one after the other.
std::string machines_text(const StudyOutcome& outcome) {
  std::set<std::string> machines;
  for (const auto& result : outcome.results) {
    if (result && !result->machine.empty()) machines.insert(result->machine);
  }
  return join(std::vector(machines.begin(), machines.end()), "; ");
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

Json runs_json(const StudyOutcome& outcome) {
  Json runs = Json::array();
  for (std::size_t i = 0; i < outcome.runs.size(); ++i) {
    const auto& run = outcome.runs[i];
    Json values = nullptr;
    if (outcome.results[i]) values = outcome.results[i]->values;
    runs.push_back({{"run", run.slug}, {"at", run.at}, {"seed", run.seed}, {"values", values}});
  }
  return runs;
}

// Puts the page and its files together.
class Writer {
 public:
  Writer(const StudyOutcome& outcome, const fs::path& out, const std::string& command,
         const std::string& page)
      : outcome_(outcome),
        study_(outcome.study),
        out_(out),
        command_(command),
        page_(study_.title, study_.question),
        files_{out / (page.empty() ? study_.name + ".html" : page),
               out / (study_.name + ".json"),
               {},
               {}} {}

  StudyFiles write() {
    add_head();
    for (const auto& shown : study_.shows) {
      page_.section(shown.title);
      switch (shown.kind) {
        case Shown::Kind::table:
        case Shown::Kind::matrix:
          add_table(shown);
          break;
        case Shown::Kind::lines:
          add_lines(shown);
          break;
        case Shown::Kind::bars:
          add_bars(shown);
          break;
        case Shown::Kind::pictures:
          add_pictures(shown);
          break;
      }
    }
    add_recipes(page_, outcome_);
    add_foot();
    write_atomically(files_.page, page_.html());
    const Json json = {{"study", study_.name},
                       {"scale", study_.scale},
                       {"command", command_},
                       {"findings", study_findings(outcome_)},
                       {"tables", tables_},
                       {"figures", figures_},
                       {"machine", machines_text(outcome_)},
                       {"runs", runs_json(outcome_)}};
    write_atomically(files_.json, json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n');
    return files_;
  }

 private:
  void add_head() {
    for (const auto& [slug, why] : outcome_.failed) page_.note(cat(slug, " failed: ", why));
    const std::string done = runs_text(outcome_);
    if (outcome_.done() < outcome_.runs.size()) {
      page_.note(cat("Not all there yet: ", done, " runs. The command below makes the others."));
    }
    for (const auto& finding : study_findings(outcome_)) page_.note(finding);
    page_.facts({{"scale", study_.scale},
                 {"runs", done},
                 {"seeds", std::to_string(study_.seeds.size())},
                 {"training in all", duration_text(total_seconds(outcome_))}});
    if (!study_.about.empty()) page_.paragraph(cat("At this scale: ", study_.about));
    if (!study_.paper.empty()) page_.paragraph(cat("In the paper: ", study_.paper));
    const auto& first = outcome_.runs.front().first;
    if (first) {
      page_.paragraph(cat("All runs start from one network, which learned from ", first->stream,
                          " for ", first->learner.train.max_updates, " updates."));
    }
    page_.paragraph(
        "Values are means over runs with different seeds. After \u00b1 stands the standard "
        "deviation of the runs, where there are several.");
    if (!study_.published.empty()) {
      page_.paragraph(
          "Columns marked \"paper\" have the paper's own numbers, of its data and networks.");
    }
  }

  void add_table(const Shown& shown) {
    const Table table = study_table(outcome_, shown);
    page_.table(table);
    tables_.push_back(table_json(shown, table));
    files_.tables.push_back(out_ / cat(study_.name, '-', files_.tables.size() + 1, ".csv"));
    write_atomically(files_.tables.back(), table_csv(table));
  }

  void add_lines(const Shown& shown) {
    const auto figures = study_lines(outcome_, shown, out_);
    page_.figures(figures);
    for (const auto& figure : figures) add_figure_file(shown, figure);
    if (!shown.panel.empty() && !shown.caption.empty()) page_.paragraph(shown.caption);
  }

  void add_bars(const Shown& shown) {
    const Figure figure = study_bars(outcome_, shown);
    page_.figure(figure);
    add_figure_file(shown, figure);
  }

  void add_figure_file(const Shown& shown, const Figure& figure) {
    const std::string name = cat(study_.name, "-figure-", files_.figures.size() + 1, ".svg");
    files_.figures.push_back(out_ / name);
    write_atomically(files_.figures.back(), standalone_svg(figure.svg));
    figures_.push_back({{"file", name}, {"title", shown.title}, {"panel", figure.title}});
  }

  void add_pictures(const Shown& shown) {
    if (!shown.caption.empty()) page_.paragraph(shown.caption);
    for (const auto& sheet : study_pictures(outcome_, shown, out_)) page_.picture(sheet);
  }

  void add_foot() {
    page_.section("Every run");
    page_.table(runs_table(outcome_));
    page_.section("How to get this page");
    page_.code(command_);
    const std::string machines = machines_text(outcome_);
    if (!machines.empty()) page_.paragraph(cat("Made on: ", machines, "."));
    page_.folded_code("The study", read_given_text(study_.file, kMostYamlBytes));
    const auto& first = outcome_.runs.front().first;
    if (first) page_.folded_code("The configuration of the first phase", config_yaml(*first));
    for (const auto& run : outcome_.runs) {
      if (run.seed != study_.seeds.front()) continue;
      page_.folded_code(cat("The configuration of ", run.slug), config_yaml(run.config));
    }
    page_.footer("Made by riffle.");
  }

  const StudyOutcome& outcome_;
  const Study& study_;
  const fs::path& out_;
  const std::string& command_;
  HtmlPage page_;
  StudyFiles files_;
  Json tables_ = Json::array();
  Json figures_ = Json::array();
};

}  // namespace

StudyFiles write_study(StudyOutcome outcome, const fs::path& out, const std::string& command,
                       const std::string& page) {
  make_folders(out);
  const FileLock lock(out / "pages.lock", out.string(), IfTaken::wait);
  add_finished(outcome, out);
  return Writer(outcome, out, command, page).write();
}

}  // namespace riffle
