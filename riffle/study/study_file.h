// A study: many runs that differ in a few named ways, what is measured of each, and which tables
// and figures come out. It is a YAML file (docs/studies.md explains it key by key), not code.
//
// load_study() reads and checks a file for one scale; expand() gives its runs. Both throw Error
// naming the file and the key at fault; an unknown key names the nearest valid one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "riffle/run/config.h"

namespace riffle {

// Configuration keys with their values as text, in the order given. A key with a plus sign behind
// it ("stream.shapes+") adds to a list instead of replacing it.
using KeyValues = std::vector<std::pair<std::string, std::string>>;

struct AxisValue {
  std::string name;   // in slugs and in the file
  std::string title;  // in tables and legends
  KeyValues set;
  bool reference = false;          // breaks the rules of a stream; shown apart
  std::vector<std::string> order;  // see ProbePlan
  // StudyAxis -> values: the runs of this value exist only together with one of those.
  std::map<std::string, std::vector<std::string>> only;
};

struct StudyAxis {
  std::string name;
  std::vector<AxisValue> values;

  // Throws std::logic_error for a name that is not there.
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
  std::int64_t samples = 0;        // of each stream at most; 0: all
  std::vector<ProbeSet> sets;      // the first is meant where a measure names none
  KeyValues groups;                // name -> shapes that pick its part of the first set's `val`
  std::vector<std::string> order;  // groups in the order in which a run meets them

  // All that an accuracy depends on, in words.
  std::string text() const;
};

// One table or one figure.
struct Shown {
  enum class Kind { table, lines };
  Kind kind = Kind::table;
  std::string title;
  std::string caption;
  std::vector<std::string> values;  // measures (measures.h); the y of a figure
  std::vector<std::string> rows;    // table: axes
  std::vector<std::string> columns;
  std::string x = "updates";  // figure: updates, samples, or an axis whose values are numbers
  std::string line;           // figure: axis, a line for each of its values
  std::string panel;          // figure: axis, a chart for each of its values
  std::map<std::string, std::vector<std::string>> where;  // only these values of an axis
};

// A number of the paper: for which values of the axes, and of which measures.
struct Published {
  std::map<std::string, std::string> at;
  std::map<std::string, double> values;
};

// What Conventional runs (buffer.policy none) have in common with the others: as many updates, or
// as much of the stream, each batch of which they use once.
enum class WithoutBuffer { same_updates, same_samples };

struct Study {
  std::string name;
  std::filesystem::path file;
  std::string title;
  std::string question;
  std::string paper;
  std::string scale;
  std::string about;  // the scale in words
  std::int64_t seeds = 1;
  std::string device;  // of all runs, whatever run.device says; empty: what it says
  WithoutBuffer without_buffer = WithoutBuffer::same_updates;
  KeyValues set;
  std::vector<StudyAxis> axes;
  ProbePlan probe;
  std::vector<Shown> shows;
  std::vector<Published> published;

  const StudyAxis& axis(const std::string& axis_name) const;
};

struct StudyRun {
  std::string slug;
  std::map<std::string, std::string> at;  // axis -> value name
  std::int64_t seed = 0;
  Config config;
  std::vector<std::string> order;
  double overlap = 0;  // of neighbouring groups, see RunResult
};

inline constexpr const char* kSeedAxis = "seed";  // what every study varies; no axis has this name
inline constexpr const char* kStudyScales[] = {"smoke", "small", "paper"};

// `file` is read as it stands; `data` takes the place of {data}.
Study load_study(const std::filesystem::path& file, const std::string& scale,
                 const std::string& data);

// The cross product of the axes in the order of the file, for the first seed, then for the next:
// a study that was interrupted is balanced. {seed} becomes the run's seed.
std::vector<StudyRun> expand(const Study& study);

}  // namespace riffle
