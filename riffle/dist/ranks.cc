#include "riffle/dist/ranks.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <stdexcept>
#include <thread>
#include <utility>

#include <ATen/ATen.h>
#include <unistd.h>

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#ifdef RIFFLE_MPI
#include "riffle/dist/mpi_ranks.h"
#endif

namespace riffle {
namespace {

class FinishedSum : public Ranks::Sum {
 public:
  bool done() override { return true; }
  void wait() override {}
};

class OneRank : public Ranks {
 public:
  OneRank() : Ranks(0, 1, 0, 1) {}

  std::unique_ptr<Sum> begin_sum(const at::Tensor&) override {
    return std::make_unique<FinishedSum>();
  }
  at::Tensor gather(const at::Tensor& rows) override { return rows; }
  at::Tensor gather_rows(const at::Tensor& rows) override { return rows; }
  std::vector<std::string> gather_bytes(const std::string& bytes) override { return {bytes}; }
  at::Tensor exchange(const at::Tensor& rows, std::span<const std::int64_t>,
                      std::span<const std::int64_t>) override {
    return rows;
  }
  void wait_for_all() override {}
  void abort(int exit_code) override { std::_Exit(exit_code); }
};

// What a launcher tells the processes that it starts.
struct Launcher {
  const char* size;
  const char* rank;
};
// Open MPI, MPICH and its kin, Slurm, Flux. The first that is set started this process: mpirun may
// itself run under Slurm.
constexpr std::array kLaunchers = {
    Launcher{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"}, Launcher{"PMI_SIZE", "PMI_RANK"},
    Launcher{"SLURM_STEP_NUM_TASKS", "SLURM_PROCID"}, Launcher{"FLUX_JOB_SIZE", "FLUX_TASK_RANK"}};

// Returns 0 for what is not said.
int told_by_launcher(const char* Launcher::*variable) {
  for (const Launcher& launcher : kLaunchers) {
    if (std::getenv(launcher.size) == nullptr) continue;
    const char* value = std::getenv(launcher.*variable);
    return value != nullptr ? std::atoi(value) : 0;
  }
  return 0;
}

}  // namespace

std::chrono::seconds Ranks::limit() {
  static const std::chrono::seconds kLimit = [] {
    constexpr std::int64_t kDefault = 20, kMost = 1'000'000;
    const char* given = std::getenv(kLimitVariable);
    const std::int64_t seconds = given != nullptr ? parse_integer(given, kLimitVariable) : kDefault;
    if (seconds < 1 || seconds > kMost) {
      throw Error(
          cat(kLimitVariable, " must be a number of seconds from 1 to ", kMost, ", not ", seconds));
    }
    return std::chrono::seconds(seconds);
  }();
  return kLimit;
}

std::int64_t Ranks::part_of(std::int64_t n) const {
  if (n % size() != 0) throw std::logic_error(cat(n, " cannot be divided by ", size(), " ranks"));
  return n / size();
}

std::string Ranks::fill_in(std::string text) const {
  for (const auto& [name, number] : {std::pair<std::string_view, int>{"{rank}", rank()},
                                     {"{ranks}", size()},
                                     {"{local_rank}", local_rank()}}) {
    for (auto at = text.find(name); at != std::string::npos; at = text.find(name)) {
      text.replace(at, name.size(), std::to_string(number));
    }
  }
  return text;
}

at::Tensor Ranks::sum(const at::Tensor& values) {
  if (alone()) return values;
  // A copy: the sum is made in place.
  const at::Tensor total =
      at::empty(values.sizes(), values.options().device(at::kCPU)).copy_(values);
  begin_sum(total)->wait();
  return total.to(values.device());
}

void Ranks::add_up(const std::vector<at::Tensor>& tensors) {
  if (alone() || tensors.empty()) return;
  std::vector<at::Tensor> flat;
  for (const at::Tensor& tensor : tensors) flat.push_back(tensor.flatten());
  const at::Tensor total = sum(at::cat(flat));
  std::int64_t offset = 0;
  for (const at::Tensor& tensor : tensors) {
    tensor.copy_(total.narrow(0, offset, tensor.numel()).view(tensor.sizes()));
    offset += tensor.numel();
  }
}

void Ranks::average(const std::vector<at::Tensor>& tensors) {
  add_up(tensors);
  if (!alone() && !tensors.empty()) at::_foreach_div_(tensors, size());
}

bool Ranks::any(bool holds) {
  if (alone()) return holds;
  return sum(at::full({1}, holds ? 1 : 0, at::kLong)).item<std::int64_t>() > 0;
}

std::string Ranks::from_first(const std::string& bytes) {
  return gather_bytes(first() ? bytes : std::string())[0];
}

std::string Ranks::first_error(const std::string& own) {
  if (alone()) return own;
  const auto errors = gather_bytes(own);
  const auto found = std::ranges::find_if(errors, [](const auto& error) { return !error.empty(); });
  return found == errors.end() ? std::string() : cat("rank ", found - errors.begin(), ": ", *found);
}

void Ranks::require_same(std::uint64_t digest, const std::string& what, const std::string& advice) {
  if (alone()) return;
  const at::Tensor all =
      gather(at::full({1}, static_cast<std::int64_t>(digest), at::kLong)).contiguous();
  const auto* digests = all.const_data_ptr<std::int64_t>();
  for (int other = 1; other < size(); ++other) {
    if (digests[other] == digests[0]) continue;
    throw Error(cat(what, " of rank ", other, " differ from those of rank 0; ", advice),
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

int launched_processes() { return std::max(1, told_by_launcher(&Launcher::size)); }

bool is_first_process() { return told_by_launcher(&Launcher::rank) == 0; }

std::vector<std::string> launcher_variables() {
  std::vector<std::string> names;
  for (const Launcher& launcher : kLaunchers) {
    names.insert(names.end(), {launcher.size, launcher.rank});
  }
  return names;
}

std::int64_t threads_per_rank(Ranks& ranks) {
  const std::int64_t cores = std::thread::hardware_concurrency();
  const bool bound = cores < ::sysconf(_SC_NPROCESSORS_ONLN);
  const std::int64_t here = std::max<std::int64_t>(1, bound ? cores : cores / ranks.local_size());
  return std::stoll(ranks.from_first(std::to_string(here)));
}

Ranks& ranks_of_process() {
  const int launched = launched_processes();
  if (launched == 1) return one_rank();
#ifdef RIFFLE_MPI
  return mpi_ranks(launched);
#else
  throw Error(
      cat("this is one of ", launched, " processes, but this riffle was built without MPI, ",
          "and each would do all the work by itself; install libopenmpi-dev and build again"));
#endif
}

}  // namespace riffle
