#include "riffle/study/study_choice.h"

#include <algorithm>

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/study/study_yaml.h"

namespace riffle {
namespace {

Names values_of(const Study& study, const std::string& axis) {
  Names names;
  if (axis == kSeedAxis) {
    for (const auto seed : study.seeds) names.push_back(std::to_string(seed));
    return names;
  }
  for (const auto& value : study.axis(axis).values) names.push_back(value.name);
  return names;
}

std::string value_of(const StudyRun& run, const std::string& axis) {
  return axis == kSeedAxis ? std::to_string(run.seed) : run.at.at(axis);
}

}  // namespace

RunChoice parse_choice(const Study& study, const std::vector<std::string>& texts) {
  Names axes = {kSeedAxis};
  for (const auto& axis : study.axes) axes.push_back(axis.name);
  RunChoice choice;
  for (const auto& text : texts) {
    const auto equals = text.find('=');
    if (equals == std::string::npos) {
      throw Error(cat("--only '", text, "' is not of the form AXIS=VALUE,VALUE; axes are ",
                      join(axes, ", ")));
    }
    const std::string axis = text.substr(0, equals);
    require_known("axis in --only", axis, axes);
    for (const auto& value : split(text.substr(equals + 1), ',')) {
      require_known(cat("value of ", axis, " in --only"), value, values_of(study, axis));
      choice[axis].push_back(value);
    }
  }
  const auto runs = expand(study);
  if (std::ranges::none_of(runs, [&](const auto& run) { return is_chosen(choice, run); })) {
    throw Error(
        cat("--only ", join(texts, " --only "), ": no run of the study has all these values"));
  }
  return choice;
}

bool is_chosen(const RunChoice& choice, const StudyRun& run) {
  return std::ranges::all_of(choice, [&](const auto& part) {
    return std::ranges::count(part.second, value_of(run, part.first)) > 0;
  });
}

}  // namespace riffle
