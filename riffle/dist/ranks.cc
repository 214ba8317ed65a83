#include "riffle/dist/ranks.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include <ATen/ATen.h>

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#ifdef RIFFLE_MPI
#include "riffle/dist/mpi_ranks.h"
#endif

namespace riffle {
namespace {

class FinishedSum : public Ranks::Sum {
 public:
  bool over() override { return true; }
  void wait() override {}
};

class OneRank : public Ranks {
 public:
  OneRank() : Ranks(0, 1, 0, 1) {}

  std::unique_ptr<Sum> begin_sum(const at::Tensor&) override {
    return std::make_unique<FinishedSum>();
  }
  at::Tensor gather(const at::Tensor& rows) override { return rows; }
  std::vector<std::string> gather_bytes(const std::string& bytes) override { return {bytes}; }
  at::Tensor exchange(const at::Tensor& rows, std::span<const std::int64_t>,
                      std::span<const std::int64_t>) override {
    return rows;
  }
  void wait_for_all() override {}
  void abort(int exit_code) override { std::_Exit(exit_code); }
};

// What launchers tell the processes that they start: Open MPI, MPICH and its kin, Slurm, Flux.
constexpr std::array kSizeVariables = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS",
                                       "FLUX_JOB_SIZE"};
constexpr std::array kRankVariables = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID",
                                       "FLUX_TASK_RANK"};

}  // namespace

std::chrono::seconds Ranks::limit() {
  static const std::chrono::seconds kLimit = [] {
    const char* given = std::getenv("RIFFLE_RANK_LIMIT");
    return std::chrono::seconds(given != nullptr ? std::max(1, std::atoi(given)) : 20);
  }();
  return kLimit;
}

at::Tensor Ranks::sum(const at::Tensor& values) {
  if (alone()) return values;
  // A copy: the sum is made in place.
  const at::Tensor total =
      at::empty(values.sizes(), values.options().device(at::kCPU)).copy_(values);
  begin_sum(total)->wait();
  return total.to(values.device());
}

bool Ranks::any(bool holds) {
  if (alone()) return holds;
  return sum(at::full({1}, holds ? 1 : 0, at::kLong)).item<std::int64_t>() > 0;
}

void Ranks::require_same(std::uint64_t digest, const std::string& what) {
  if (alone()) return;
  const at::Tensor all =
      gather(at::full({1}, static_cast<std::int64_t>(digest), at::kLong)).contiguous();
  const auto* digests = all.const_data_ptr<std::int64_t>();
  for (int other = 1; other < size(); ++other) {
    if (digests[other] == digests[0]) continue;
    throw Error(cat(what, " of rank ", other, " differ from those of rank 0; ranks that do not ",
                    "agree cannot train one network. All must run the same riffle on the same kind",
                    " of machine"),
                ErrorKind::failure);
  }
}

Ranks& one_rank() {
  static OneRank alone;
  return alone;
}

void abort_other_ranks([[maybe_unused]] int exit_code) {
#ifdef RIFFLE_MPI
  abort_mpi_ranks(exit_code);
#endif
}

void require_one_process(const std::string& command) {
  const int launched = launched_processes();
  if (launched == 1) return;
  throw Error(cat(command, " works in one process, and this is one of ", launched,
                  "; only riffle train and riffle resume share their work"));
}

int launched_processes() {
  for (const char* name : kSizeVariables) {
    const char* value = std::getenv(name);
    if (value != nullptr && std::atoi(value) > 1) return std::atoi(value);
  }
  return 1;
}

bool is_first_process() {
  for (const char* name : kRankVariables) {
    const char* value = std::getenv(name);
    if (value != nullptr && std::atoi(value) > 0) return false;
  }
  return true;
}

Ranks& ranks_of_process() {
  const int launched = launched_processes();
  if (launched == 1) return one_rank();
#ifdef RIFFLE_MPI
  return mpi_ranks(launched);
#else
  throw Error(
      cat("this is one of ", launched, " processes, but this riffle was built without MPI, ",
          "and each would train a network of its own; install libopenmpi-dev and build ", "again"));
#endif
}

}  // namespace riffle
