// Notices a rank that is lost, in builds with MPI.
//
// A thread of each rank tells rank 0 once a second that it is alive and for how long it has been
// computing since its last exchange; rank 0 tells all others the same of itself. A rank that is
// silent, or computes without end, for Ranks::limit() is named on standard error, and the run ends
// on all ranks.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include <mpi.h>

#include "riffle/base/clock.h"

namespace riffle {

class Heartbeat {
 public:
  // All ranks must make one at the same time.
  Heartbeat();
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;

  // Whether this rank is expected to compute or exchange; see Ranks::Working.
  void set_working(bool working);

  // While one exists this rank waits for others: it does not compute.
  class Exchanging {
   public:
    explicit Exchanging(Heartbeat& heartbeat)
        : heartbeat_(heartbeat), before_(heartbeat.busy_since_.exchange(kIdle)) {}
    ~Exchanging() {
      if (before_ != kIdle) heartbeat_.set_working(true);
    }
    Exchanging(const Exchanging&) = delete;

   private:
    Heartbeat& heartbeat_;
    const std::int64_t before_;
  };

 private:
  static constexpr std::int64_t kIdle = -1;

  // Another rank as this one sees it.
  struct Peer {
    int rank = 0;
    std::string name;
    Clock::time_point heard = Clock::now();
    std::int64_t beat = 0;  // what is received: ms that it has been computing
    std::int64_t sent = 0;
    MPI_Request receiving = MPI_REQUEST_NULL;
    MPI_Request sending = MPI_REQUEST_NULL;
  };

  void run();
  void listen(Peer& peer);
  void beat(Peer& peer);
  [[noreturn]] void end_run(const Peer& peer, const std::string& what);
  std::int64_t busy_ms() const;

  MPI_Comm ranks_ = MPI_COMM_NULL;
  int rank_ = 0;
  std::vector<Peer> peers_;
  // In ms of the clock; kIdle: not computing.
  std::atomic<std::int64_t> busy_since_ = kIdle;
  std::atomic<bool> ending_ = false;
  std::thread thread_;
};

}  // namespace riffle
