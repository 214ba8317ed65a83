// For tests: the program started by mpirun as several ranks.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "apps/riffle/testing/program.h"
#include <nlohmann/json.hpp>

namespace riffle {

using Json = nlohmann::json;

// As a test may: more ranks than cores, whoever runs it.
inline std::vector<std::string> mpirun(int ranks) {
  return {RIFFLE_MPIRUN, "-n", std::to_string(ranks), "--oversubscribe", "--bind-to", "none"};
}

class SeveralRanks : public ProgramTest {
 protected:
  SeveralRanks() {
    for (const char* name : {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
                             "OMPI_MCA_mpi_yield_when_idle", "OMP_NUM_THREADS"}) {
      ::setenv(name, "1", 1);
    }
    ::setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 1);
  }

  Outcome ranks(int number, const std::string& arguments) const {
    std::string launcher;
    for (const auto& word : mpirun(number)) launcher += word + ' ';
    return riffle(arguments, launcher);
  }

  std::vector<Json> metrics(const std::string& run) const {
    std::vector<Json> lines;
    std::ifstream in(folder_ / run / "metrics.jsonl");
    for (std::string line; std::getline(in, line) && !in.eof();) {  // the last may be half written
      lines.push_back(Json::parse(line));
    }
    return lines;
  }

  // Returns the processes of riffle that work on this test's folder.
  std::vector<pid_t> workers() const {
    std::vector<pid_t> found;
    for (const auto& entry : fs::directory_iterator("/proc")) {
      const pid_t id = std::atoi(entry.path().filename().c_str());
      std::error_code gone;
      if (id <= 0 || fs::read_symlink(entry.path() / "exe", gone) != RIFFLE_PROGRAM) continue;
      if (fs::read_symlink(entry.path() / "cwd", gone) == folder_) found.push_back(id);
    }
    return found;
  }
  // mpirun may end before those that it killed have.
  void expect_no_workers() const {
    for (int tries = 0; tries < 1000 && !workers().empty(); ++tries) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_TRUE(workers().empty());
  }
  // In the order of ranks, which is that of starting.
  pid_t worker(int rank) const {
    auto all = workers();
    std::ranges::sort(all);
    return all.at(static_cast<std::size_t>(rank));
  }
};

// 24 is divided by 1, 2, 3 and 4.
inline const std::string kShared =
    "--stream 'synthetic:?frames=8&size=16' --size 16 --arch resnet10 --stem stride2 --width 4 "
    "--batch 24 --capacity 48 --updates 2 --set model.projector_out=16 --threads 1 "
    "--set model.predictor_hidden=8 --schedule constant --buffer reservoir --set metrics.every=1 "
    "--set checkpoint.every=4 ";

}  // namespace riffle
