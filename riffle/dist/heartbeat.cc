#include "riffle/dist/heartbeat.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include <unistd.h>

#include "riffle/base/text.h"
#include "riffle/dist/ranks.h"

namespace riffle {
namespace {

using namespace std::chrono_literals;

constexpr auto kListenEvery = 100ms;
constexpr auto kBeatEvery = 1s;
constexpr int kNameBytes = 128;

std::int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now().time_since_epoch())
      .count();
}

// Machine and process of each rank.
std::vector<std::string> names_of_ranks(MPI_Comm ranks, int size) {
  char host[kNameBytes] = {};
  ::gethostname(host, sizeof(host) - 1);
  std::string own = cat("process ", ::getpid(), " on ", host);
  own.resize(kNameBytes);
  std::string all(static_cast<std::size_t>(size * kNameBytes), '\0');
  MPI_Allgather(own.data(), kNameBytes, MPI_CHAR, all.data(), kNameBytes, MPI_CHAR, ranks);
  std::vector<std::string> names;
  for (int i = 0; i < size; ++i) {
    names.emplace_back(all.substr(static_cast<std::size_t>(i * kNameBytes), kNameBytes).c_str());
  }
  return names;
}

}  // namespace

Heartbeat::Heartbeat() {
  int size = 1;
  MPI_Comm_dup(MPI_COMM_WORLD, &ranks_);
  MPI_Comm_set_errhandler(ranks_, MPI_ERRORS_RETURN);
  MPI_Comm_rank(ranks_, &rank_);
  MPI_Comm_size(ranks_, &size);
  const auto names = names_of_ranks(ranks_, size);
  for (int other = 0; other < size; ++other) {
    if (other == rank_ || (rank_ != 0 && other != 0)) continue;
    peers_.push_back({.rank = other, .name = names[static_cast<std::size_t>(other)]});
  }
  thread_ = std::thread([this] { run(); });
}

Heartbeat::~Heartbeat() {
  ending_ = true;
  thread_.join();
  MPI_Comm_free(&ranks_);
}

void Heartbeat::set_working(bool working) { busy_since_ = working ? now_ms() : kIdle; }

std::int64_t Heartbeat::busy_ms() const {
  const std::int64_t since = busy_since_;
  return since == kIdle ? 0 : now_ms() - since;
}

void Heartbeat::run() {
  auto next = Clock::now();
  auto looked = Clock::now();
  while (!ending_) {
    // Time in which this very process did not run says nothing about others.
    if (Clock::now() - looked > kBeatEvery * 5) {
      for (Peer& peer : peers_) peer.heard = Clock::now();
    }
    looked = Clock::now();
    for (Peer& peer : peers_) listen(peer);
    if (Clock::now() >= next) {
      for (Peer& peer : peers_) beat(peer);
      next = Clock::now() + kBeatEvery;
    }
    std::this_thread::sleep_for(kListenEvery);
  }
  for (Peer& peer : peers_) {
    if (peer.receiving != MPI_REQUEST_NULL) {
      MPI_Cancel(&peer.receiving);
      MPI_Wait(&peer.receiving, MPI_STATUS_IGNORE);
    }
    // The last beat may find nobody who listens: it is not waited for.
    if (peer.sending != MPI_REQUEST_NULL) MPI_Request_free(&peer.sending);
  }
}

void Heartbeat::listen(Peer& peer) {
  const std::int64_t limit = std::chrono::milliseconds(Ranks::limit()).count();
  while (true) {
    if (peer.receiving == MPI_REQUEST_NULL) {
      MPI_Irecv(&peer.beat, 1, MPI_INT64_T, peer.rank, 0, ranks_, &peer.receiving);
    }
    int heard = 0;
    if (MPI_Test(&peer.receiving, &heard, MPI_STATUS_IGNORE) != MPI_SUCCESS) {
      end_run(peer, "cannot be reached any more");
    }
    if (heard == 0) break;
    peer.heard = Clock::now();
    if (peer.beat > limit) {
      end_run(peer, cat("has computed for ", peer.beat / 1000, " s without an end (",
                        Ranks::kLimitVariable, "=SECONDS allows more)"));
    }
  }
  if (Clock::now() - peer.heard > Ranks::limit()) {
    end_run(peer, cat("has given no sign of life for ", Ranks::limit().count(), " s"));
  }
}

void Heartbeat::beat(Peer& peer) {
  if (peer.sending != MPI_REQUEST_NULL) {
    int sent = 0;
    MPI_Test(&peer.sending, &sent, MPI_STATUS_IGNORE);
    if (sent == 0) return;  // it does not listen
  }
  peer.sent = busy_ms();
  if (MPI_Isend(&peer.sent, 1, MPI_INT64_T, peer.rank, 0, ranks_, &peer.sending) != MPI_SUCCESS) {
    end_run(peer, "cannot be reached any more");
  }
}

void Heartbeat::end_run(const Peer& peer, const std::string& what) {
  // In one piece: other ranks and mpirun write to the same terminal.
  std::cerr << cat("riffle: rank ", peer.rank, " (", printable(peer.name), ") ", what,
                   "; the run ends on all ranks. The last checkpoint is good: riffle resume "
                   "continues\n")
            << std::flush;
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::_Exit(1);
}

}  // namespace riffle
