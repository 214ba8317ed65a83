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

}  // namespace

void require_ready(const ProbePlan& probe, const std::vector<const StudyRun*>& runs) {
  if (runs.empty()) return;
  Sources sources;
  for (const auto* run : runs) {
    try {
      open_device(run->config.learner.device);
    } catch (const Error& error) {
      throw Error(cat(error.what(), " (--device overrides the study's)"));
    }
    sources.require(cat("the stream of ", run->slug), run->config.stream, run->config.shapes);
    if (run->first) {
      sources.require("the stream of the first phase", run->first->stream, run->first->shapes);
    }
  }
  for (const auto& set : probe.sets) {
    sources.require(cat("probe.sets.", set.name, ".train"), set.train, set.train_shapes);
    sources.require(cat("probe.sets.", set.name, ".val"), set.val, set.val_shapes);
  }
  for (const auto& [name, shapes] : probe.groups) {
    sources.require(cat("probe.groups.", name), probe.sets.front().val, shapes);
  }
}

}  // namespace riffle
