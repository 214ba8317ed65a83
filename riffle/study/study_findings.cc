#include "riffle/study/study_findings.h"

#include <cmath>

#include "riffle/base/text.h"
#include "riffle/study/study_places.h"

namespace riffle {
namespace {

struct Side {
  double count = 0;
  MeanAndSpread value;
};

Side side(const StudyOutcome& outcome, const Claim& claim, const Place& place) {
  const auto values = values_at(outcome, {}, place, claim.measure);
  return {static_cast<double>(values.size()), mean_and_spread(values)};
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

// Of the difference of two means; NaN with a single run on a side.
double standard_error(const Side& a, const Side& b) {
  return std::sqrt(a.value.spread * a.value.spread / a.count +
                   b.value.spread * b.value.spread / b.count);
}

}  // namespace

std::vector<std::string> study_findings(const StudyOutcome& outcome) {
  std::vector<std::string> findings;
  for (const auto& claim : outcome.study.claims) {
    const Measure& claimed = measure(claim.measure);
    const Side of = side(outcome, claim, claim.of);
    const Side above = side(outcome, claim, claim.above);
    const double difference = of.value.mean - above.value.mean;
    if (!std::isfinite(difference)) continue;
    const double error = standard_error(of, above);
    const bool close = std::abs(difference) <= error;
    findings.push_back(
        cat(close            ? "Too close to tell: "
            : difference > 0 ? "Held: "
                             : "Did not hold: ",
            claim.text, ". ", measure_label(claim.measure), ' ', with_unit(of.value.mean, claimed),
            " (", title_of(outcome.study, claim.of), ") against ",
            with_unit(above.value.mean, claimed), " (", title_of(outcome.study, claim.above),
            "), a difference of ", difference > 0 ? "+" : "", fixed(difference, claimed.decimals),
            std::isfinite(error) ? cat(" with a standard error of ", fixed(error, claimed.decimals))
                                 : std::string(" between single runs"),
            "."));
  }
  return findings;
}

}  // namespace riffle
