// A study: many runs that differ in a few named ways, what is measured of each, and the tables and
// figures that show it. It is a YAML file (docs/studies.md explains it key by key), not code.
//
// load_study() reads and checks a file for one scale; expand() gives its runs. Both throw Error
// naming the file and the key at fault; an unknown key names the nearest valid one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "riffle/run/config.h"

namespace riffle {

// Configuration keys with their values as text, in the order given. A key that ends with a plus
// sign ("stream.shapes+") adds to a list instead of replacing it.
using KeyValues = std::vector<std::pair<std::string, std::string>>;

struct AxisValue {
  // In slugs and in the file.
  std::string name;
  // In tables and legends.
  std::string title;
  KeyValues set;
  // Breaks the rules of a stream; shown apart.
  bool reference = false;
  // See ProbePlan.
  std::vector<std::string> order;
  // Axis -> values: the runs of this value exist only together with one of those.
  std::map<std::string, std::vector<std::string>> only;
};

struct StudyAxis {
  std::string name;
  std::vector<AxisValue> values;

  // Throws std::logic_error if the name is unknown.
  const AxisValue& value(const std::string& value_name) const;
};

struct ProbeSet {
  std::string name;
  std::string train;
  std::string train_shapes;
  std::string val;
  std::string val_shapes;
  std::string recipe;
};

struct ProbePlan {
  // Evaluations, evenly along each run as near as checkpoints lie, the last at its end.
  std::int64_t points = 1;
  // Whether the untrained network is measured too. It always is with more than one point.
  bool untrained = false;
  // Of each stream at most; 0: all.
  std::int64_t samples = 0;
  // The first is meant where a measure names none.
  std::vector<ProbeSet> sets;
  // Name -> shapes that pick its part of the first set's `val`.
  KeyValues groups;
  // Groups in the order in which a run meets them.
  std::vector<std::string> order;

  bool measures_untrained() const { return untrained || points > 1; }
  // Returns all that an accuracy depends on, as text.
  std::string text() const;
};

// One table, figure or set of pictures.
struct Shown {
  enum class Kind { table, matrix, lines, bars, pictures };
  Kind kind = Kind::table;
  std::string title;
  std::string caption;
  // Measures (measures.h); the y of a figure.
  std::vector<std::string> values;
  // Table, matrix, bars, pictures: axes.
  std::vector<std::string> rows;
  // Table: axes.
  std::vector<std::string> columns;
  // Table: whether the untrained network has a row.
  bool untrained = false;
  // Lines: updates, samples, or an axis whose values are numbers.
  std::string x = "updates";
  // Lines: an axis, with a line for each of its values.
  std::string line;
  // Lines: an axis, with a chart for each of its values.
  std::string panel;
  // Pictures: shows one of every N samples of the first run's stream too. 0: does not.
  std::int64_t every = 0;
  // Only these values of an axis.
  std::map<std::string, std::vector<std::string>> where;

  bool is_table() const { return kind == Kind::table || kind == Kind::matrix; }
};

// That a measure is higher at one place among the axes than at another.
struct Claim {
  std::string text;
  std::map<std::string, std::string> of;
  std::map<std::string, std::string> above;
  std::string measure = "linear_top1";
};

// Numbers of the paper: at which values of the axes, and of which measures.
struct Published {
  std::map<std::string, std::string> at;
  std::map<std::string, double> values;
};

// What Conventional runs (buffer.policy none) have in common with the others: the number of
// updates, or the part of the stream that is read, of which they use each batch once.
enum class WithoutBuffer { same_updates, same_samples };

struct Study {
  std::string name;
  std::filesystem::path file;
  std::string title;
  std::string question;
  std::string paper;
  std::string scale;
  // Describes the scale.
  std::string about;
  // Each kind of run is made once with each.
  std::vector<std::int64_t> seeds = {0};
  // Keys of every run, whatever the file says.
  KeyValues overrides;
  WithoutBuffer without_buffer = WithoutBuffer::same_updates;
  KeyValues set;
  // On top of `set`: the run whose network all others start from; nothing: random weights.
  std::optional<KeyValues> first;
  std::vector<StudyAxis> axes;
  ProbePlan probe;
  std::vector<Claim> claims;
  std::vector<Shown> shows;
  std::vector<Published> published;

  const StudyAxis& axis(const std::string& axis_name) const;
};

// Returns `count` seeds: first, first + 1, ...
std::vector<std::int64_t> seeds_from(std::int64_t first, std::int64_t count);

struct StudyRun {
  std::string slug;
  // Axis -> name of its value.
  std::map<std::string, std::string> at;
  std::int64_t seed = 0;
  Config config;
  // The run whose network this one starts from (study_first.h); null: none.
  std::shared_ptr<const Config> first;
  std::vector<std::string> order;
  // Of neighbouring groups, see RunResult.
  double overlap = 0;
};

// What every study varies; no axis of a file has this name.
inline constexpr const char* kSeedAxis = "seed";
// With all seeds.
inline constexpr std::int64_t kMostStudyRuns = 10'000;
inline constexpr const char* kStudyScales[] = {"smoke", "quick", "small", "paper"};

// Reads a file; `data` takes the place of {data}.
Study load_study(const std::filesystem::path& file, const std::string& scale,
                 const std::string& data);

// Returns the cross product of the axes in the order of the file, for the first seed, then for the
// next, so that a study that was interrupted is balanced. {seed} becomes the run's seed.
// Throws Error, with their number, if there would be more than kMostStudyRuns.
std::vector<StudyRun> expand(const Study& study);

}  // namespace riffle
