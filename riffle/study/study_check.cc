#include "riffle/study/study_check.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/eval/embedding.h"
#include "riffle/stream/shapes/shape.h"
#include "riffle/train/updater.h"

namespace riffle {
namespace {

// It passes over samples without a label.
bool picks_by_label(const std::string& shapes) {
  return std::ranges::any_of(parse_shapes(shapes),
                             [](const Uri& shape) { return shape.scheme() == "lifelong"; });
}

struct Source {
  std::string what;
  std::string uri;
  std::string shapes;
  // Whether a probe needs its labels.
  bool labelled = false;
};

class Sources {
 public:
  void require(const Source& source) {
    struct Opened {};
    // Shapes read their options on the way down to the source; what they read of the source itself
    // would come on the way back.
    const auto open = [&]() -> std::unique_ptr<Stream> {
      const bool read = source.labelled && !picks_by_label(source.shapes);
      if (opened_.emplace(source.uri, read).second) {
        const auto stream = open_stream(source.uri);
        if (read) require_first_label(*stream);
      }
      throw Opened();
    };
    try {
      open_shapes(open, source.shapes);
    } catch (const Opened&) {
    } catch (const Error& error) {
      throw Error(cat(source.what, ": ", error.what()), error.kind());
    }
  }

 private:
  // By address, and whether the first sample was read.
  std::set<std::pair<std::string, bool>> opened_;
};

std::string expected_at(const std::string& uri) {
  const std::string scheme = uri.substr(0, uri.find(':'));
  if (scheme == "folder") return "a folder of JPEG or PNG pictures, one folder per class";
  if (scheme == "shards") {
    return "tar files in WebDataset style; the class is the folder of a picture, or its .cls";
  }
  if (scheme == "video") return "films of the usual kinds, in folders of any depth";
  return "what docs/streams.md says of " + scheme + ":";
}

// Returns every source that runs and probe sets need.
std::vector<Source> sources_of(const ProbePlan& probe, const std::vector<const StudyRun*>& runs) {
  std::vector<Source> all;
  for (const auto* run : runs) {
    if (run->first) {
      all.push_back({"the stream of the first phase", run->first->stream, run->first->shapes});
    }
    all.push_back({cat("the stream of ", run->slug), run->config.stream, run->config.shapes});
  }
  for (const auto& set : probe.sets) {
    all.push_back({cat("probe.sets.", set.name, ".train"), set.train, set.train_shapes, true});
    all.push_back({cat("probe.sets.", set.name, ".val"), set.val, set.val_shapes, true});
  }
  for (const auto& [name, shapes] : probe.groups) {
    all.push_back({cat("probe.groups.", name), probe.sets.front().val, shapes});
  }
  return all;
}

}  // namespace

std::vector<MissingSource> missing_sources(const ProbePlan& probe,
                                           const std::vector<const StudyRun*>& runs) {
  Sources sources;
  std::vector<MissingSource> missing;
  // Runs of other seeds, and probe sets, read the same files: one that is missing is said once.
  std::set<std::string> said;
  for (const Source& source : sources_of(probe, runs)) {
    try {
      sources.require(source);
    } catch (const Error& error) {
      const std::string why = error.what();
      if (said.insert(why.substr(source.what.size())).second) {
        missing.push_back({why, expected_at(source.uri)});
      }
    }
  }
  return missing;
}

void require_ready(const ProbePlan& probe, const std::vector<const StudyRun*>& runs) {
  if (runs.empty()) return;
  for (const auto* run : runs) {
    try {
      open_device(run->config.learner.device);
    } catch (const Error& error) {
      throw Error(cat(error.what(), " (--device overrides the study's)"));
    }
  }
  Sources sources;
  for (const Source& source : sources_of(probe, runs)) sources.require(source);
}

}  // namespace riffle
