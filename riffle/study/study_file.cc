#include "riffle/study/study_file.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "riffle/base/error.h"
#include "riffle/base/file.h"
#include "riffle/base/text.h"
#include "riffle/eval/linear_probe.h"
#include "riffle/run/yaml.h"
#include "riffle/study/measures.h"
#include "riffle/study/study_yaml.h"

namespace riffle {
namespace {

class Reader {
 public:
  Reader(std::filesystem::path file, std::string scale, std::string data)
      : file_(std::move(file)), scale_(std::move(scale)), data_(std::move(data)) {}

  Study read() {
    const YAML::Node root = load(file_);
    require_keys(root, "the study",
                 {"title", "question", "paper", "runs_of", "set", "first", "vary", "without_buffer",
                  "probe", "scales", "claims", "show", "published"});
    Study study;
    study.name = file_.stem().string();
    study.file = file_;
    study.scale = scale_;
    study.title = text_of(root, "title", study.name);
    study.question = text_of(root, "question");
    study.paper = text_of(root, "paper");
    if (root["runs_of"]) {
      for (const char* key : {"set", "first", "vary", "without_buffer", "probe", "scales"}) {
        if (root[key]) throw Error(cat("'", key, "' cannot stand beside 'runs_of'"));
      }
      const auto other = file_.parent_path() / (text_of(root["runs_of"]) + ".yaml");
      read_runs(load(other), study);
    } else {
      read_runs(root, study);
    }
    read_claims(root, study);
    read_shows(root, study);
    read_published(root, study);
    return study;
  }

 private:
  YAML::Node load(const std::filesystem::path& path) const {
    const YAML::Node root = parse_yaml(read_given_text(path, kMostYamlBytes));
    require_map(root, path.string());
    return root;
  }

  std::string filled(const std::string& text) const {
    if (data_.empty() && text.find("{data}") != std::string::npos) {
      throw Error(cat("'", text, "' needs --data DIR"));
    }
    const auto folder = std::filesystem::absolute(file_).parent_path().string();
    return replaced(replaced(text, "{data}", data_), "{study}", folder);
  }

  // Nested or dotted keys, each checked by the configuration itself.
  void read_keys(const YAML::Node& node, const std::string& prefix, KeyValues& keys,
                 const Names& reserved = {}) const {
    require_map(node, prefix.empty() ? "set" : prefix);
    for (const auto& entry : node) {
      const auto name = entry.first.as<std::string>();
      if (prefix.empty() && std::ranges::find(reserved, name) != reserved.end()) continue;
      const std::string key = prefix + name;
      if (entry.second.IsMap()) {
        read_keys(entry.second, key + '.', keys);
        continue;
      }
      const std::string value = filled(text_of(entry.second));
      const bool adds = key.ends_with('+');
      const std::string bare = adds ? key.substr(0, key.size() - 1) : key;
      if (bare == "run.seed" || bare.starts_with("checkpoint.")) {
        throw Error(cat(bare, " is set by the study itself"));
      }
      ConfigBuilder builder;
      builder.set(bare, replaced(value, "{seed}", "0"));
      const auto found = std::ranges::find(keys, key, &KeyValues::value_type::first);
      if (found == keys.end()) {
        keys.emplace_back(key, value);
      } else {
        found->second = value;
      }
    }
  }

  void read_runs(const YAML::Node& root, Study& study) {
    if (!root["scales"]) throw Error("'scales' is missing: how large are the runs?");
    const Names scales(std::begin(kStudyScales), std::end(kStudyScales));
    require_keys(root["scales"], "scales", scales);
    Names present;
    for (const auto& entry : root["scales"]) present.push_back(entry.first.as<std::string>());
    require_known("scale", scale_, present);
    const YAML::Node scale = root["scales"][scale_];
    require_keys(scale, cat("scales.", scale_),
                 {"about", "set", "first", "vary", "drop", "probe", "seeds"});
    study.about = text_of(scale, "about");
    if (scale["seeds"])
      study.seeds = seeds_from(0, count_of(scale["seeds"], "seeds", kMostStudyRuns));
    if (root["without_buffer"]) {
      const auto rule = text_of(root["without_buffer"]);
      require_known("value of without_buffer", rule, {"same_updates", "same_samples"});
      study.without_buffer =
          rule == "same_updates" ? WithoutBuffer::same_updates : WithoutBuffer::same_samples;
    }
    if (root["set"]) read_keys(root["set"], "", study.set);
    if (scale["set"]) read_keys(scale["set"], "", study.set);
    for (const auto& node : {root["first"], scale["first"]}) {
      if (!node) continue;
      if (!study.first) study.first.emplace();
      read_keys(node, "", *study.first);
    }
    if (!root["vary"]) throw Error("'vary' is missing: what do the runs differ in?");
    read_axes(root["vary"], choices_of(scale["drop"]), study);
    if (scale["vary"]) change_axes(scale["vary"], study);
    if (root["probe"]) read_probe(root["probe"], study.probe);
    if (scale["probe"]) read_probe(scale["probe"], study.probe);
    if (study.probe.sets.empty()) throw Error("probe.sets is missing: what is measured?");
    check_names(study);
  }

  void read_axes(const YAML::Node& vary, const std::map<std::string, Names>& drop, Study& study) {
    require_map(vary, "vary");
    for (const auto& axis_node : vary) {
      StudyAxis axis{axis_node.first.as<std::string>(), {}};
      require_map(axis_node.second, cat("vary.", axis.name));
      if (axis.name == kSeedAxis) throw Error("vary.seed: every study has seeds; see 'seeds'");
      const auto dropped = drop.find(axis.name);
      for (const auto& node : axis_node.second) {
        const auto name = node.first.as<std::string>();
        value_names_[axis.name].push_back(name);
        if (dropped != drop.end() && std::ranges::count(dropped->second, name) > 0) continue;
        AxisValue value{.name = name, .title = name, .set = {}, .order = {}, .only = {}};
        if (name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                   "0123456789._") != std::string::npos) {
          throw Error(cat("vary.", axis.name, ": '", name,
                          "' is part of folder names: letters, digits, dots and underscores only"));
        }
        read_value(node.second, value);
        axis.values.push_back(std::move(value));
      }
      if (axis.values.empty()) throw Error(cat("vary.", axis.name, " has no values"));
      study.axes.push_back(std::move(axis));
    }
    for (const auto& [name, values] : drop) {
      require_values(study, name, values, "drop");
    }
  }

  void require_values(Study& study, const std::string& axis, const Names& values,
                      const std::string& where) const {
    study_axis(study, axis, where);
    for (const auto& value : values) {
      require_known(cat("value of ", axis, " in ", where), value, value_names_.at(axis));
    }
  }

  void read_value(const YAML::Node& node, AxisValue& value) const {
    if (node.IsNull()) return;
    read_keys(node, "", value.set, {"title", "reference", "order", "only"});
    value.title = text_of(node, "title", value.title);
    if (node["reference"]) value.reference = parse_bool(text_of(node["reference"]), "reference");
    if (node["order"]) value.order = names_of(node["order"]);
    for (auto& [axis, names] : choices_of(node["only"])) value.only[axis] = names;
  }

  void change_axes(const YAML::Node& vary, Study& study) const {
    require_map(vary, "vary");
    for (const auto& axis_node : vary) {
      StudyAxis& axis = study_axis(study, axis_node.first.as<std::string>(), "vary");
      Names names;
      for (const auto& value : axis.values) names.push_back(value.name);
      for (const auto& node : axis_node.second) {
        const auto name = node.first.as<std::string>();
        require_known(cat("value of ", axis.name), name, names);
        read_value(node.second, *std::ranges::find(axis.values, name, &AxisValue::name));
      }
    }
  }

  static StudyAxis& study_axis(Study& study, const std::string& name, const std::string& where) {
    Names names;
    for (const auto& axis : study.axes) names.push_back(axis.name);
    require_known(cat("axis in ", where), name, names);
    return *std::ranges::find(study.axes, name, &StudyAxis::name);
  }

  void read_probe(const YAML::Node& node, ProbePlan& probe) const {
    require_keys(node, "probe", {"points", "untrained", "samples", "sets", "groups", "order"});
    if (node["points"]) probe.points = count_of(node["points"], "probe.points", kMostStudyRuns);
    if (node["untrained"]) {
      probe.untrained = parse_bool(text_of(node["untrained"]), "probe.untrained");
    }
    if (node["samples"]) probe.samples = count_of(node["samples"], "probe.samples");
    if (node["order"]) probe.order = names_of(node["order"]);
    if (node["sets"]) {
      probe.sets.clear();
      require_map(node["sets"], "probe.sets");
      for (const auto& entry : node["sets"]) {
        const auto name = entry.first.as<std::string>();
        const YAML::Node& set = entry.second;
        require_keys(set, cat("probe.sets.", name),
                     {"train", "train_shapes", "val", "val_shapes", "recipe"});
        for (const char* key : {"train", "val"}) {
          if (!set[key]) throw Error(cat("probe.sets.", name, " has no '", key, "'"));
        }
        const std::string recipe = text_of(set, "recipe", "cached");
        linear_recipe(recipe);
        probe.sets.push_back({name, filled(text_of(set["train"])),
                              filled(text_of(set, "train_shapes")), filled(text_of(set["val"])),
                              filled(text_of(set, "val_shapes")), recipe});
      }
    }
    if (node["groups"]) {
      probe.groups.clear();
      require_map(node["groups"], "probe.groups");
      for (const auto& entry : node["groups"]) {
        probe.groups.emplace_back(entry.first.as<std::string>(), filled(text_of(entry.second)));
      }
    }
  }

  static Names group_names(const Study& study) {
    Names names;
    for (const auto& [name, unused] : study.probe.groups) names.push_back(name);
    return names;
  }

  // Throws Error if the file names a group or value that is not there.
  void check_names(Study& study) const {
    const auto check_order = [&](const Names& order) {
      for (const auto& name : order) require_known("group in order", name, group_names(study));
    };
    check_order(study.probe.order);
    for (const auto& axis : study.axes) {
      for (const auto& value : axis.values) {
        check_order(value.order);
        for (const auto& [other, names] : value.only) require_values(study, other, names, "only");
      }
    }
  }

  Names part_names(const Study& study) const {
    Names parts;
    for (const auto& set : study.probe.sets) parts.push_back(set.name);
    for (const auto& name : group_names(study)) parts.push_back(name);
    return parts;
  }

  void read_claims(const YAML::Node& root, Study& study) const {
    const auto place = [&](const YAML::Node& node, const std::string& where) {
      std::map<std::string, std::string> at;
      for (const auto& [axis, values] : choices_of(node)) {
        require_values(study, axis, values, where);
        if (values.size() != 1) throw Error(cat(where, ": ", axis, " needs exactly one value"));
        at[axis] = values.front();
      }
      if (at.empty()) throw Error(cat(where, " names no value of an axis"));
      return at;
    };
    for (const auto& node : root["claims"]) {
      require_keys(node, "a claim", {"claim", "of", "above", "measure"});
      Claim claim;
      claim.text = text_of(node, "claim");
      if (claim.text.empty()) throw Error("each entry of 'claims' begins with 'claim: TEXT'");
      claim.of = place(node["of"], cat("'of' in '", claim.text, "'"));
      claim.above = place(node["above"], cat("'above' in '", claim.text, "'"));
      claim.measure = text_of(node, "measure", claim.measure);
      require_measure(claim.measure, part_names(study));
      study.claims.push_back(std::move(claim));
    }
  }

  struct ShownKind {
    const char* key;
    Shown::Kind kind;
    Names keys;
  };
  static const std::vector<ShownKind>& shown_kinds() {
    static const std::vector<ShownKind> all = {
        {"table", Shown::Kind::table, {"rows", "columns", "values", "untrained"}},
        {"matrix", Shown::Kind::matrix, {"rows", "values"}},
        {"lines", Shown::Kind::lines, {"x", "y", "line", "panel"}},
        {"bars", Shown::Kind::bars, {"y", "rows"}},
        {"pictures", Shown::Kind::pictures, {"rows", "every"}}};
    return all;
  }

  void read_shows(const YAML::Node& root, Study& study) const {
    if (!root["show"] || !root["show"].IsSequence()) {
      throw Error("'show' must be a list of tables and figures");
    }
    for (const auto& node : root["show"]) {
      require_map(node, "show");
      const auto kind = std::ranges::find_if(
          shown_kinds(), [&](const auto& each) { return static_cast<bool>(node[each.key]); });
      if (kind == shown_kinds().end()) {
        throw Error(
            "each entry of 'show' begins with 'table:', 'matrix:', 'lines:', 'bars:' or "
            "'pictures:'");
      }
      Names keys = kind->keys;
      keys.insert(keys.end(), {kind->key, "caption", "where", "scales"});
      require_keys(node, cat("an entry of 'show' with '", kind->key, "'"), keys);
      const Names scales = names_of(node["scales"]);
      if (!scales.empty() && std::ranges::find(scales, scale_) == scales.end()) continue;
      Shown shown;
      shown.kind = kind->kind;
      shown.title = text_of(node, kind->key);
      shown.caption = text_of(node, "caption");
      shown.values = names_of(node[shown.is_table() ? "values" : "y"]);
      shown.rows = names_of(node["rows"]);
      shown.columns = names_of(node["columns"]);
      if (node["untrained"]) {
        shown.untrained = parse_bool(text_of(node["untrained"]), "untrained");
      }
      shown.x = text_of(node, "x", shown.x);
      shown.line = text_of(node, "line");
      shown.panel = text_of(node, "panel");
      if (node["every"]) shown.every = count_of(node["every"], "every");
      shown.where = choices_of(node["where"]);
      check_shown(shown, study);
      study.shows.push_back(std::move(shown));
    }
  }

  void check_shown(const Shown& shown, Study& study) const {
    if (shown.title.empty()) throw Error("an entry of 'show' has no title");
    const std::string where = cat("'", shown.title, "'");
    const bool lines = shown.kind == Shown::Kind::lines;
    const bool pictures = shown.kind == Shown::Kind::pictures;
    if (shown.values.empty() && !pictures) {
      throw Error(cat(where, " has no ", shown.is_table() ? "values" : "y"));
    }
    if (shown.rows.empty() && !lines) throw Error(cat(where, " has no rows"));
    if (shown.kind == Shown::Kind::bars && (shown.values.size() > 1 || shown.rows.size() > 1)) {
      throw Error(cat(where, ": bars show one measure over the values of one axis"));
    }
    if (shown.kind == Shown::Kind::matrix &&
        (shown.values.size() > 1 || !is_accuracy(shown.values.front()))) {
      throw Error(cat(where, ": a matrix shows one accuracy: ", join(accuracy_names(), ", ")));
    }
    if (shown.untrained && !study.probe.measures_untrained()) {
      throw Error(cat(where, ": the untrained network is not measured; see probe.untrained"));
    }
    for (const auto& value : shown.values) {
      if (lines) {
        require_curve(value, part_names(study), shown.x);
      } else {
        require_measure(value, part_names(study));
      }
    }
    for (const auto& name : shown.rows) study_axis(study, name, where);
    for (const auto& name : shown.columns) study_axis(study, name, where);
    for (const auto& [name, values] : shown.where) require_values(study, name, values, where);
    if (!shown.line.empty()) study_axis(study, shown.line, where);
    if (!shown.panel.empty()) study_axis(study, shown.panel, where);
    if (shown.x == "updates" || shown.x == "samples") return;
    for (const auto& value : study_axis(study, shown.x, where).values) {
      parse_number(value.name, cat("a value of ", shown.x, ", which is an x axis,"));
    }
  }

  void read_published(const YAML::Node& root, Study& study) const {
    for (const auto& node : root["published"]) {
      require_map(node, "published");
      Published entry;
      for (const auto& item : node) {
        const auto key = item.first.as<std::string>();
        const auto value = item.second.as<std::string>();
        if (std::ranges::find(study.axes, key, &StudyAxis::name) != study.axes.end()) {
          require_values(study, key, {value}, "published");
          entry.at[key] = value;
        } else {
          // The paper's sets need not be there at this scale.
          require_measure(key.substr(0, key.find('@')), {});
          entry.values[key] = parse_number(value, cat("published ", key));
        }
      }
      study.published.push_back(std::move(entry));
    }
  }

  std::filesystem::path file_;
  std::string scale_;
  std::string data_;
  // By axis, with those that the scale drops.
  std::map<std::string, Names> value_names_;
};

}  // namespace

const AxisValue& StudyAxis::value(const std::string& value_name) const {
  const auto found = std::ranges::find(values, value_name, &AxisValue::name);
  if (found == values.end()) throw std::logic_error("no value " + value_name + " of " + name);
  return *found;
}

const StudyAxis& Study::axis(const std::string& axis_name) const {
  const auto found = std::ranges::find(axes, axis_name, &StudyAxis::name);
  if (found == axes.end()) throw std::logic_error("no axis " + axis_name);
  return *found;
}

std::vector<std::int64_t> seeds_from(std::int64_t first, std::int64_t count) {
  if (count > kMostStudyRuns || first > std::numeric_limits<std::int64_t>::max() - count) {
    throw Error(
        cat(count, " seeds from ", first, " on; a study has at most ", kMostStudyRuns, " runs"));
  }
  std::vector<std::int64_t> seeds(static_cast<std::size_t>(count));
  std::iota(seeds.begin(), seeds.end(), first);
  return seeds;
}

std::string ProbePlan::text() const {
  std::string text = cat("points ", points, ", samples ", samples);
  for (const auto& set : sets) {
    text += cat("; ", set.name, ": ", set.recipe, ", train ", set.train, ' ', set.train_shapes,
                ", val ", set.val, ' ', set.val_shapes);
  }
  for (const auto& [name, shapes] : groups) text += cat("; ", name, ": ", shapes);
  if (untrained) text += "; the untrained network too";
  return text;
}

Study load_study(const std::filesystem::path& file, const std::string& scale,
                 const std::string& data) {
  try {
    return Reader(file, scale, data).read();
  } catch (const YAML::Exception& error) {
    throw Error(cat(file.string(), ": ", error.what()));
  } catch (const Error& error) {
    throw Error(cat(file.string(), ": ", error.what()), error.kind());
  }
}

}  // namespace riffle
