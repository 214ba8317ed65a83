// What the page shows, as JSON: read from run folders, which may be growing.
//
// A run is named by its id, which is looked up among the runs found: nothing that a client says
// becomes a part of a path. Results are kept as long as the files they came from are the same.
// Thread-safe; pictures are prepared one request at a time.
#pragma once

#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "riffle/base/clock.h"
#include "riffle/watch/run_finder.h"

namespace riffle {

class Watcher {
 public:
  // Throws Error if there is no such folder.
  explicit Watcher(std::filesystem::path folder);

  // Return JSON texts; names and labels in them may be anything, cleaned to UTF-8.
  //
  // Returns all runs: what they are, their state and their newest figures.
  std::string runs();
  // These return nothing for an id that is not of a run.
  //
  // Returns at most a few hundred points of every curve.
  std::optional<std::string> curves(const std::string& id);
  // Return sheets (sheets.h), or {"error": ...} where they cannot be shown. kept() may be of an
  // earlier checkpoint: preparing them takes at most a hundredth of the time, so that a run beside
  // does not notice it.
  std::optional<std::string> arrived(const std::string& id);
  std::optional<std::string> kept(const std::string& id);

 private:
  // A result, and what the files that it came from looked like.
  struct Kept {
    std::string stamp;
    std::string text;
    // Before this it is not made again, whatever the files look like.
    Clock::time_point stays_until = {};
  };
  struct Facts {
    std::string stamp;
    nlohmann::json json;
  };

  std::optional<FoundRun> find(const std::string& id) const;
  nlohmann::json facts(const FoundRun& run);
  nlohmann::json described(const FoundRun& run);
  template <typename Make>
  std::string remembered(std::map<std::string, Kept>& all, const std::string& id,
                         const std::string& stamp, const Make& make);

  const std::filesystem::path folder_;
  std::mutex mutex_;  // for the maps
  std::mutex picture_mutex_;
  std::map<std::string, Facts> facts_;
  std::map<std::string, Kept> curves_;
  std::map<std::string, Kept> arrived_;
  std::map<std::string, Kept> kept_;
};

}  // namespace riffle
