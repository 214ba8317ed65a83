#include "riffle/study/study_check.h"

#include <memory>
#include <set>
#include <string>

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/stream/shapes/shape.h"
#include "riffle/train/updater.h"

namespace riffle {
namespace {

class Sources {
 public:
  void require(const std::string& what, const std::string& uri, const std::string& shapes) {
    struct Opened {};
    // Shapes read their options on the way down to the source; what they read of the source itself
    // would come on the way back.
    const auto open = [&]() -> std::unique_ptr<Stream> {
      if (opened_.insert(uri).second) open_stream(uri);
      throw Opened();
    };
    try {
      open_shapes(open, shapes);
    } catch (const Opened&) {
    } catch (const Error& error) {
      throw Error(cat(what, ": ", error.what()), error.kind());
    }
  }

 private:
  std::set<std::string> opened_;
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

// Calls use(what, uri, shapes) for every source that runs and probe sets need.
template <typename Use>
void for_each_source(const ProbePlan& probe, const std::vector<const StudyRun*>& runs,
                     const Use& use) {
  for (const auto* run : runs) {
    if (run->first) use("the stream of the first phase", run->first->stream, run->first->shapes);
    use(cat("the stream of ", run->slug), run->config.stream, run->config.shapes);
  }
  for (const auto& set : probe.sets) {
    use(cat("probe.sets.", set.name, ".train"), set.train, set.train_shapes);
    use(cat("probe.sets.", set.name, ".val"), set.val, set.val_shapes);
  }
  for (const auto& [name, shapes] : probe.groups) {
    use(cat("probe.groups.", name), probe.sets.front().val, shapes);
  }
}

}  // namespace

std::vector<MissingSource> missing_sources(const ProbePlan& probe,
                                           const std::vector<const StudyRun*>& runs) {
  Sources sources;
  std::vector<MissingSource> missing;
  // Runs of other seeds, and probe sets, read the same files: one that is missing is said once.
  std::set<std::string> said;
  for_each_source(probe, runs, [&](const std::string& what, const auto& uri, const auto& shapes) {
    try {
      sources.require(what, uri, shapes);
    } catch (const Error& error) {
      const std::string why = error.what();
      if (said.insert(why.substr(what.size())).second) missing.push_back({why, expected_at(uri)});
    }
  });
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
  for_each_source(probe, runs, [&](const std::string& what, const auto& uri, const auto& shapes) {
    sources.require(what, uri, shapes);
  });
}

}  // namespace riffle
