#include "riffle/dist/mpi_ranks.h"

#include <atomic>
#include <exception>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>

#include <ATen/ATen.h>
#include <sched.h>

#include "riffle/base/clock.h"
#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/dist/heartbeat.h"

namespace riffle {
namespace {

// Polls before a waiting rank begins to sleep between them.
constexpr int kEagerPolls = 200;
constexpr std::chrono::microseconds kPollPause(50);

void check(int result, const char* what) {
  if (result == MPI_SUCCESS) return;
  char message[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(result, message, &length);
  throw Error(cat(what, " failed: ", std::string(message, static_cast<std::size_t>(length))),
              ErrorKind::failure);
}

bool is_over(MPI_Request& request) {
  int over = 0;
  check(MPI_Test(&request, &over, MPI_STATUS_IGNORE), "an exchange between ranks");
  return over != 0;
}

void wait_for(MPI_Request& request) {
  for (int polls = 0; !is_over(request); ++polls) {
    if (polls < kEagerPolls) {
      ::sched_yield();
    } else {
      std::this_thread::sleep_for(kPollPause);
    }
  }
}

MPI_Datatype type_of(const at::Tensor& values) {
  if (!values.is_cpu() || !values.is_contiguous()) {
    throw std::logic_error("ranks: a sum needs a contiguous tensor on the CPU");
  }
  switch (values.scalar_type()) {
    case at::kFloat:
      return MPI_FLOAT;
    case at::kDouble:
      return MPI_DOUBLE;
    case at::kLong:
      return MPI_INT64_T;
    default:
      throw std::logic_error(cat("ranks: cannot add up ", values.toString()));
  }
}

// Rows of a tensor as one MPI type, so that counts, which are ints, count rows.
class RowType {
 public:
  explicit RowType(std::int64_t bytes) {
    check(MPI_Type_contiguous(static_cast<int>(bytes), MPI_BYTE, &type_), "MPI_Type_contiguous");
    check(MPI_Type_commit(&type_), "MPI_Type_commit");
  }
  ~RowType() { MPI_Type_free(&type_); }
  RowType(const RowType&) = delete;
  MPI_Datatype get() const { return type_; }

 private:
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

class MpiSum : public Ranks::Sum {
 public:
  MpiSum(const at::Tensor& values, MPI_Comm ranks, Heartbeat& heartbeat)
      : values_(values), heartbeat_(heartbeat) {
    check(
        MPI_Iallreduce(MPI_IN_PLACE, values_.mutable_data_ptr(), static_cast<int>(values_.numel()),
                       type_of(values_), MPI_SUM, ranks, &request_),
        "a sum over ranks");
  }
  ~MpiSum() override {
    try {
      wait();
    } catch (const std::exception&) {
      // Whoever needs the result has called wait().
    }
  }

  bool over() override { return is_over(request_); }
  void wait() override {
    const Heartbeat::Exchanging exchanging(heartbeat_);
    wait_for(request_);
  }

 private:
  const at::Tensor values_;
  Heartbeat& heartbeat_;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

struct LocalRanks {
  int rank = 0;
  int size = 1;
};

int rank_in_world() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

int size_of_world() {
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

LocalRanks local_ranks() {
  MPI_Comm local = MPI_COMM_NULL;
  LocalRanks ranks;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &local);
  MPI_Comm_rank(local, &ranks.rank);
  MPI_Comm_size(local, &ranks.size);
  MPI_Comm_free(&local);
  return ranks;
}

class MpiRanks : public Ranks {
 public:
  explicit MpiRanks(LocalRanks local)
      : Ranks(rank_in_world(), size_of_world(), local.rank, local.size) {
    check(MPI_Comm_dup(MPI_COMM_WORLD, &all_), "MPI_Comm_dup");
    MPI_Comm_set_errhandler(all_, MPI_ERRORS_RETURN);
    heartbeat_ = std::make_unique<Heartbeat>();
  }

  ~MpiRanks() override {
    try {
      // A rank that ends early must not look lost to those that still work.
      wait_for_all();
      heartbeat_.reset();
      MPI_Comm_free(&all_);
      MPI_Finalize();
    } catch (const std::exception& error) {
      std::cerr << "riffle: rank " << rank() << ": " << error.what() << '\n';
      abort(1);
    }
  }

  std::unique_ptr<Sum> begin_sum(const at::Tensor& values) override {
    bytes_ += values.nbytes();
    return std::make_unique<MpiSum>(values, all_, *heartbeat_);
  }

  at::Tensor gather(const at::Tensor& rows) override {
    const at::Tensor here = rows.cpu().contiguous();
    std::vector<std::int64_t> shape = here.sizes().vec();
    shape[0] *= size();
    at::Tensor all = at::empty(shape, here.options());
    bytes_ += here.nbytes();
    const RowType row(static_cast<std::int64_t>(here.nbytes()));
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Iallgather(here.const_data_ptr(), 1, row.get(), all.mutable_data_ptr(), 1, row.get(),
                         all_, &request),
          "a gather of ranks");
    finish(request);
    return all.to(rows.device());
  }

  std::vector<std::string> gather_bytes(const std::string& bytes) override {
    const at::Tensor lengths =
        gather(at::full({1}, static_cast<std::int64_t>(bytes.size()), at::kLong));
    const auto* length = lengths.const_data_ptr<std::int64_t>();
    std::vector<int> counts, offsets;
    int total = 0;
    for (int i = 0; i < size(); ++i) {
      counts.push_back(static_cast<int>(length[i]));
      offsets.push_back(total);
      total += counts.back();
    }
    std::string all(static_cast<std::size_t>(total), '\0');
    bytes_ += bytes.size();
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Iallgatherv(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, all.data(),
                          counts.data(), offsets.data(), MPI_BYTE, all_, &request),
          "a gather of ranks");
    finish(request);
    std::vector<std::string> parts;
    for (int i = 0; i < size(); ++i) {
      parts.push_back(all.substr(static_cast<std::size_t>(offsets[static_cast<std::size_t>(i)]),
                                 static_cast<std::size_t>(counts[static_cast<std::size_t>(i)])));
    }
    return parts;
  }

  at::Tensor exchange(const at::Tensor& rows, std::span<const std::int64_t> send,
                      std::span<const std::int64_t> receive) override {
    const at::Tensor here = rows.cpu().contiguous();
    const Parts sent(send), received(receive);
    if (sent.total != here.size(0)) throw std::logic_error("ranks: rows are not what is sent");
    std::vector<std::int64_t> shape = here.sizes().vec();
    shape[0] = received.total;
    at::Tensor got = at::empty(shape, here.options());
    std::int64_t row_bytes = static_cast<std::int64_t>(here.element_size());
    for (std::int64_t dim = 1; dim < here.dim(); ++dim) row_bytes *= here.size(dim);
    const RowType row(row_bytes);
    const auto own = static_cast<std::size_t>(rank());
    bytes_ += static_cast<std::uint64_t>((sent.total - send[own]) * row_bytes);
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Ialltoallv(here.const_data_ptr(), sent.counts.data(), sent.offsets.data(), row.get(),
                         got.mutable_data_ptr(), received.counts.data(), received.offsets.data(),
                         row.get(), all_, &request),
          "an exchange between ranks");
    finish(request);
    return got.to(rows.device());
  }

  void wait_for_all() override {
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Ibarrier(all_, &request), "waiting for all ranks");
    finish(request);
  }

  void abort(int exit_code) override {
    abort_mpi_ranks(exit_code);
    std::_Exit(exit_code);
  }

 protected:
  void set_working(bool working) override { heartbeat_->set_working(working); }

 private:
  struct Parts {
    explicit Parts(std::span<const std::int64_t> rows) {
      for (const std::int64_t count : rows) {
        offsets.push_back(static_cast<int>(total));
        counts.push_back(static_cast<int>(count));
        total += count;
      }
    }
    std::vector<int> counts;
    std::vector<int> offsets;
    std::int64_t total = 0;
  };

  void finish(MPI_Request& request) {
    const Heartbeat::Exchanging exchanging(*heartbeat_);
    wait_for(request);
  }

  MPI_Comm all_ = MPI_COMM_NULL;
  std::unique_ptr<Heartbeat> heartbeat_;
};

}  // namespace

Ranks& mpi_ranks(int launched) {
  static const std::unique_ptr<MpiRanks> ranks = [launched] {
    int given = 0;
    // Several threads exchange: the one that trains, autograd's for a GPU, the heartbeat's.
    if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &given) != MPI_SUCCESS ||
        given != MPI_THREAD_MULTIPLE) {
      throw Error("this MPI cannot be used by several threads (MPI_THREAD_MULTIPLE)",
                  ErrorKind::failure);
    }
    if (size_of_world() != launched) {
      const int found = size_of_world();
      MPI_Finalize();
      throw Error(cat("the launcher started ", launched, " processes, but MPI sees ", found,
                      ": they would train networks of their own. Start riffle with the mpirun of ",
                      "the MPI it was built with, or srun --mpi=pmix (srun --mpi=list shows what ",
                      "there is)"));
    }
    return std::make_unique<MpiRanks>(local_ranks());
  }();
  return *ranks;
}

void abort_mpi_ranks(int exit_code) {
  int begun = 0, ended = 0;
  MPI_Initialized(&begun);
  MPI_Finalized(&ended);
  if (begun == 0 || ended != 0) return;
  std::cout.flush();
  std::cerr.flush();
  MPI_Abort(MPI_COMM_WORLD, exit_code);
}

}  // namespace riffle
