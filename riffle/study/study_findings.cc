#include "riffle/study/study_findings.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <utility>

#include "riffle/base/text.h"
#include "riffle/study/study_places.h"

namespace riffle {
namespace {

// What a run has beside the axes that a claim names: its seed, and its values of the others.
using Rest = std::pair<std::int64_t, Place>;
using Side = std::vector<std::pair<Rest, double>>;

// The values of two sides. Paired: those of the same place are of runs with the same rest.
struct Compared {
  std::vector<double> of;
  std::vector<double> above;
  bool paired = false;
};

Side side(const StudyOutcome& outcome, const Claim& claim, const Place& place) {
  Side runs;
  for (const auto i : runs_at(outcome, {}, place)) {
    const StudyRun& run = outcome.runs[i];
    const double value =
        final_value(*outcome.results[i], claim.measure, outcome.study.probe.sets.front().name);
    if (!std::isfinite(value)) continue;
    Rest rest{run.seed, run.at};
    for (const auto& [axis, unused] : joined(claim.of, claim.above)) rest.second.erase(axis);
    runs.emplace_back(std::move(rest), value);
  }
  return runs;
}

std::vector<double> values_without_rest(const Side& runs) {
  std::vector<double> values;
  for (const auto& [rest, value] : runs) values.push_back(value);
  return values;
}

// In pairs if every run of one side has its partner on the other, and no more than one.
Compared compared(const Side& of, const Side& above) {
  Compared pairs{.of = {}, .above = {}, .paired = true};
  const std::map<Rest, double> firsts(of.begin(), of.end());
  const std::map<Rest, double> seconds(above.begin(), above.end());
  for (const auto& [rest, value] : firsts) {
    const auto partner = seconds.find(rest);
    if (partner == seconds.end()) continue;
    pairs.of.push_back(value);
    pairs.above.push_back(partner->second);
  }
  const bool unique = firsts.size() == of.size() && seconds.size() == above.size();
  if (unique && pairs.of.size() == std::min(of.size(), above.size())) return pairs;
  return {values_without_rest(of), values_without_rest(above), false};
}

std::string title_of(const Study& study, const Place& place) {
  std::vector<std::string> titles;
  for (const auto& [axis, value] : place) titles.push_back(value_title(study, axis, value));
  return join(titles, ", ");
}

std::string with_unit(double value, const Measure& of) {
  const std::string number = fixed(value, of.decimals);
  return of.unit.empty() ? number : cat(number, ' ', of.unit);
}

double squared_error(const std::vector<double>& values) {
  const double spread = mean_and_spread(values).spread;
  return spread * spread / static_cast<double>(values.size());
}

// Of the difference of the means; NaN with a single pair, or a single run on a side.
double standard_error(const Compared& runs) {
  if (!runs.paired) return std::sqrt(squared_error(runs.of) + squared_error(runs.above));
  std::vector<double> differences;
  for (std::size_t i = 0; i < runs.of.size(); ++i) {
    differences.push_back(runs.of[i] - runs.above[i]);
  }
  return std::sqrt(squared_error(differences));
}

std::string error_text(const Compared& runs, const Measure& of) {
  const double error = standard_error(runs);
  if (!std::isfinite(error)) return " between single runs";
  const std::string text = cat(" with a standard error of ", fixed(error, of.decimals));
  return runs.paired ? cat(text, " (paired over ", runs.of.size(), " runs)") : text;
}

}  // namespace

std::vector<std::string> study_findings(const StudyOutcome& outcome) {
  std::vector<std::string> findings;
  for (const auto& claim : outcome.study.claims) {
    const Measure& claimed = measure(claim.measure);
    const Compared runs =
        compared(side(outcome, claim, claim.of), side(outcome, claim, claim.above));
    const double of = mean_and_spread(runs.of).mean;
    const double above = mean_and_spread(runs.above).mean;
    const double difference = of - above;
    if (!std::isfinite(difference)) continue;
    const bool close = std::abs(difference) <= standard_error(runs);
    findings.push_back(
        cat(close            ? "Too close to tell: "
            : difference > 0 ? "Held: "
                             : "Did not hold: ",
            claim.text, ". ", measure_label(claim.measure), ' ', with_unit(of, claimed), " (",
            title_of(outcome.study, claim.of), ") against ", with_unit(above, claimed), " (",
            title_of(outcome.study, claim.above), "), a difference of ", difference > 0 ? "+" : "",
            fixed(difference, claimed.decimals), error_text(runs, claimed), "."));
  }
  return findings;
}

}  // namespace riffle
