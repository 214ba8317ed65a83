// Several processes that train one network together: the ranks of a run.
//
// mpirun or srun starts them; MPI carries what they exchange. A process that was started alone is
// the only rank, and then every call here costs nothing: the rest of the code asks its ranks and
// need not know how many there are.
//
// All ranks must make the same calls in the same order, as they do when they decide alike. Calls
// that wait do so without burning a core. Tensors may be on any device; what is exchanged goes
// through host memory, unless the ranks have a GPU each (ranks_gpu.h).
//
// A rank that died, was stopped or hangs ends the process on all ranks, with a message that names
// it: see limit() and Working.
//
// Threads may take turns, as the one that trains and autograd's for a GPU do; no two may call at
// once.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace riffle {

class Ranks {
 public:
  static constexpr const char* kLimitVariable = "RIFFLE_RANK_LIMIT";
  // Returns the time without a sign of life after which a rank counts as lost: 20 s, or as many as
  // the environment variable says. Throws Error if that is not a number of seconds.
  static std::chrono::seconds limit();

  // A sum that was begun. Destroying it waits as well.
  class Sum {
   public:
    virtual ~Sum() = default;
    // Lets the exchange make progress, and returns whether it is done.
    virtual bool done() = 0;
    // Waits until the tensor holds the sum.
    virtual void wait() = 0;
  };

  virtual ~Ranks() = default;
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  // From 0.
  int rank() const { return rank_; }
  int size() const { return size_; }
  bool alone() const { return size_ == 1; }
  // Returns whether this is rank 0, which writes what is written once.
  bool first() const { return rank_ == 0; }
  // Returns whether sums, gathers and exchanges of tensors on a GPU only queue work there, which
  // can be recorded in a CUDA graph: ranks_on_gpu(). Otherwise they wait, and go through host
  // memory.
  virtual bool on_gpu() const { return false; }
  // Among the ranks of this machine.
  int local_rank() const { return local_rank_; }
  int local_size() const { return local_size_; }

  // Returns how many of n samples are one rank's: an equal part, rank 0's first. Requires that
  // size() divides n.
  std::int64_t part_of(std::int64_t n) const;
  // Returns the text with {rank}, {ranks} and {local_rank} replaced by this rank's numbers.
  std::string fill_in(std::string text) const;

  // Begins to sum the tensors of all ranks, in place. Requires float32, float64 or int64 on the
  // CPU, contiguous, of the same shape on all ranks, and that nobody touches it before the sum is
  // done. The result has the same bits on all ranks.
  virtual std::unique_ptr<Sum> begin_sum(const at::Tensor& values) = 0;
  // Returns the sum of the tensors of all ranks, on the device of `values`.
  virtual at::Tensor sum(const at::Tensor& values);
  // Makes each of the tensors, which are of one type, the sum over all ranks. Requires dense memory
  // and the same shapes and strides on all ranks.
  virtual void add_up(const std::vector<at::Tensor>& tensors);
  // The same for the mean.
  void average(const std::vector<at::Tensor>& tensors);
  // Returns the rows of all ranks one after the other. Requires the same shape on all ranks.
  virtual at::Tensor gather(const at::Tensor& rows) = 0;
  // Returns the same for ranks that have different numbers of rows. An undefined tensor has none;
  // the result is undefined if all are.
  virtual at::Tensor gather_rows(const at::Tensor& rows) = 0;
  // Returns the bytes of all ranks, by rank; they may differ in length.
  virtual std::vector<std::string> gather_bytes(const std::string& bytes) = 0;
  // Sends rows to all ranks: the first send[0] to rank 0, the next send[1] to rank 1 and so on.
  // Returns the rows received: receive[0] of rank 0, then receive[1] of rank 1. Requires rows of
  // the same size on all ranks; what one sends to another is what that one receives of it.
  virtual at::Tensor exchange(const at::Tensor& rows, std::span<const std::int64_t> send,
                              std::span<const std::int64_t> receive) = 0;
  // Waits until all ranks are here.
  virtual void wait_for_all() = 0;

  // Returns whether it holds on any rank.
  bool any(bool holds);
  // Returns what rank 0 gave.
  std::string from_first(const std::string& bytes);
  // Returns the first error that is not empty, after its rank ("rank 1: no such file"), or an empty
  // text. For what may fail on one rank and must then fail on all.
  std::string first_error(const std::string& own);
  // Throws Error, naming the first rank that differs from rank 0, unless `digest` is the same on
  // all. `what` says in the message what it is of, and `advice` what to do.
  void require_same(std::uint64_t digest, const std::string& what, const std::string& advice);

  // While such an object exists this rank is expected to compute or exchange. If it does neither
  // for limit(), it hangs, and the others end the run. Without one (waiting for a stream or a disk)
  // only a process that no longer runs counts as lost.
  class Working {
   public:
    explicit Working(Ranks& ranks) : ranks_(ranks) { ranks_.set_working(true); }
    ~Working() { ranks_.set_working(false); }
    Working(const Working&) = delete;

   private:
    Ranks& ranks_;
  };

  // Ends this process and all other ranks at once, with that exit code.
  [[noreturn]] virtual void abort(int exit_code) = 0;

  // Returns the number of bytes that this rank handed over to be exchanged so far.
  std::uint64_t bytes() const { return bytes_; }

 protected:
  Ranks(int rank, int size, int local_rank, int local_size)
      : rank_(rank), size_(size), local_rank_(local_rank), local_size_(local_size) {}
  virtual void set_working(bool /*working*/) {}

  std::uint64_t bytes_ = 0;

 private:
  const int rank_;
  const int size_;
  const int local_rank_;
  const int local_size_;
};

// Returns this process as the only rank.
Ranks& one_rank();

// Returns the ranks that this process was started with; the first call joins them. Throws Error if
// a launcher started several processes and they cannot find one another: riffle was built without
// MPI, or the launcher speaks to another MPI.
Ranks& ranks_of_process();

// Ends all ranks at once, with that exit code, if this process has joined others; otherwise
// returns. For a process that failed and would leave the others waiting.
void abort_other_ranks(int exit_code);

// Returns the number of processes that the launcher (mpirun, srun) says it started with this one; 1
// without a launcher.
int launched_processes();
// Returns whether the launcher calls this process the first of those.
bool is_first_process();
// Returns the names of the environment variables that say so. A program that a rank starts for
// itself must not inherit them: it is not a rank.
std::vector<std::string> launcher_variables();

// Returns the threads for each rank of a machine: its cores, divided by its ranks unless the
// launcher bound each to some. All ranks must call it, and get rank 0's number.
std::int64_t threads_per_rank(Ranks& ranks);

}  // namespace riffle
