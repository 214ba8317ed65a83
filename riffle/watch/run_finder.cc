#include "riffle/watch/run_finder.h"

#include <algorithm>
#include <iomanip>

#include "riffle/base/name_hash.h"
#include "riffle/base/text.h"
#include "riffle/run/run_folder.h"

namespace riffle {
namespace fs = std::filesystem;
namespace {

constexpr int kDeepest = 3;
constexpr std::size_t kMostRuns = 1000;

FoundRun found_run(const fs::path& path, const std::string& name) {
  return {name, cat(std::hex, std::setfill('0'), std::setw(16), name_hash(name)), path};
}

bool is_plain(const fs::path& path, fs::file_type type) {
  std::error_code unknown;
  return fs::symlink_status(path, unknown).type() == type;
}

void look_in(const fs::path& root, const fs::path& folder, int depth, std::vector<FoundRun>& runs) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (runs.size() >= kMostRuns) return;
    const fs::path& path = entry->path();
    if (!is_plain(path, fs::file_type::directory)) continue;
    if (RunFolder::is_run(path)) {
      runs.push_back(found_run(path, path.lexically_relative(root).generic_string()));
    } else if (depth < kDeepest) {
      look_in(root, path, depth + 1, runs);
    }
  }
}

}  // namespace

std::vector<FoundRun> find_runs(const fs::path& folder) {
  std::vector<FoundRun> runs;
  if (RunFolder::is_run(folder)) {
    runs.push_back(found_run(folder, fs::weakly_canonical(folder).filename().string()));
  } else {
    look_in(folder, folder, 1, runs);
  }
  std::ranges::sort(runs, {}, &FoundRun::name);
  return runs;
}

}  // namespace riffle
