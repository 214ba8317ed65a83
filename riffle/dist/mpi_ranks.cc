#include "riffle/dist/mpi_ranks.h"

#include <cstring>
#include <exception>
#include <iostream>
#include <limits>
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

bool is_done(MPI_Request& request) {
  int done = 0;
  check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "an exchange between ranks");
  return done != 0;
}

void wait_for(MPI_Request& request) {
  for (int polls = 0; !is_done(request); ++polls) {
    if (polls < kEagerPolls) {
      ::sched_yield();
    } else {
      std::this_thread::sleep_for(kPollPause);
    }
  }
}

// MPI counts with ints.
int mpi_count(std::int64_t items) {
  if (std::in_range<int>(items)) return static_cast<int>(items);
  throw Error(cat("ranks cannot exchange ", items, " items at once: MPI counts to ",
                  std::numeric_limits<int>::max(), "; smaller batches need fewer"),
              ErrorKind::failure);
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

// A row of a tensor as one MPI type, so that counts count rows.
class RowType {
 public:
  explicit RowType(const at::Tensor& rows)
      : bytes_(static_cast<std::int64_t>(rows.element_size())) {
    for (std::int64_t dim = 1; dim < rows.dim(); ++dim) bytes_ *= rows.size(dim);
    check(MPI_Type_contiguous(mpi_count(bytes_), MPI_BYTE, &type_), "MPI_Type_contiguous");
    check(MPI_Type_commit(&type_), "MPI_Type_commit");
  }
  ~RowType() { MPI_Type_free(&type_); }
  RowType(const RowType&) = delete;
  MPI_Datatype get() const { return type_; }
  std::int64_t bytes() const { return bytes_; }

 private:
  std::int64_t bytes_;
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

class MpiSum : public Ranks::Sum {
 public:
  MpiSum(const at::Tensor& values, MPI_Comm ranks, Heartbeat& heartbeat)
      : values_(values), heartbeat_(heartbeat) {
    check(MPI_Iallreduce(MPI_IN_PLACE, values_.mutable_data_ptr(), mpi_count(values_.numel()),
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

  bool done() override { return is_done(request_); }
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
      std::cerr << cat("riffle: rank ", rank(), ": ", printable(error.what()), '\n');
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
    const RowType row(here);
    const int count = mpi_count(here.size(0));
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Iallgather(here.const_data_ptr(), count, row.get(), all.mutable_data_ptr(), count,
                         row.get(), all_, &request),
          "a gather of ranks");
    finish(request);
    return all.to(rows.device());
  }

  at::Tensor gather_rows(const at::Tensor& rows) override {
    const at::Tensor here = rows.defined() ? rows.cpu().contiguous() : at::Tensor();
    // Whoever has no rows learns from the others what theirs are like.
    std::vector<std::int64_t> counts, shape;
    at::ScalarType type = at::kFloat;
    for (const std::string& bytes : gather_bytes(layout_of(here))) {
      std::vector<std::int64_t> layout(bytes.size() / sizeof(std::int64_t));
      std::memcpy(layout.data(), bytes.data(), bytes.size());
      counts.push_back(layout.empty() ? 0 : layout[1]);
      if (layout.empty()) continue;
      type = static_cast<at::ScalarType>(layout[0]);
      shape.assign(layout.begin() + 1, layout.end());
    }
    if (shape.empty()) return rows;  // nobody has any
    const Parts parts(counts);
    shape[0] = parts.total;
    at::Tensor all = at::empty(shape, type);
    const RowType row(all);
    gather_items(here.defined() ? here.const_data_ptr() : nullptr, all.mutable_data_ptr(), parts,
                 row.get());
    if (!here.defined()) return all;
    bytes_ += here.nbytes();
    return all.to(rows.device());
  }

  std::vector<std::string> gather_bytes(const std::string& bytes) override {
    const at::Tensor lengths =
        gather(at::full({1}, static_cast<std::int64_t>(bytes.size()), at::kLong));
    const Parts parts({lengths.const_data_ptr<std::int64_t>(), static_cast<std::size_t>(size())});
    std::string all(static_cast<std::size_t>(parts.total), '\0');
    bytes_ += bytes.size();
    gather_items(bytes.data(), all.data(), parts, MPI_BYTE);
    std::vector<std::string> by_rank;
    for (std::size_t i = 0; i < parts.counts.size(); ++i) {
      by_rank.push_back(all.substr(static_cast<std::size_t>(parts.offsets[i]),
                                   static_cast<std::size_t>(parts.counts[i])));
    }
    return by_rank;
  }

  at::Tensor exchange(const at::Tensor& rows, std::span<const std::int64_t> send,
                      std::span<const std::int64_t> receive) override {
    const at::Tensor here = rows.cpu().contiguous();
    const Parts sent(send), received(receive);
    if (sent.total != here.size(0)) throw std::logic_error("ranks: rows are not what is sent");
    std::vector<std::int64_t> shape = here.sizes().vec();
    shape[0] = received.total;
    at::Tensor got = at::empty(shape, here.options());
    const RowType row(here);
    const auto own = static_cast<std::size_t>(rank());
    bytes_ += static_cast<std::uint64_t>((sent.total - send[own]) * row.bytes());
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
        offsets.push_back(mpi_count(total));
        counts.push_back(mpi_count(count));
        total += count;
      }
    }
    std::vector<int> counts;
    std::vector<int> offsets;
    std::int64_t total = 0;
  };

  // Type, number of rows and shape of a row; nothing of an undefined tensor.
  static std::string layout_of(const at::Tensor& rows) {
    if (!rows.defined()) return {};
    std::vector<std::int64_t> layout = rows.sizes().vec();
    layout.insert(layout.begin(), static_cast<std::int64_t>(rows.scalar_type()));
    return {reinterpret_cast<const char*>(layout.data()), layout.size() * sizeof(std::int64_t)};
  }

  void gather_items(const void* own, void* all, const Parts& parts, MPI_Datatype type) {
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Iallgatherv(own, parts.counts[static_cast<std::size_t>(rank())], type, all,
                          parts.counts.data(), parts.offsets.data(), type, all_, &request),
          "a gather of ranks");
    finish(request);
  }

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
    Ranks::limit();  // refused here, not by the thread that needs it
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
                      ": each would do all the work by itself. Start riffle with the mpirun of ",
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
