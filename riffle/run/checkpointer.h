// Writes a run's checkpoints beside the training, on a thread of its own.
//
// Between two updates, keep_up() hands the pictures that changed to the thread, which appends them
// to the picture log; so a checkpoint itself only copies weights, features and bookkeeping, and the
// rest goes on in the background. Memory is bounded: a few stream batches of pictures and one such
// copy.
//
// A checkpoint that is due while the one before is still being written, or while pictures wait for
// the disk, is made a few updates later. With `wait` (checkpoint.wait), training waits instead. It
// also does when a second one is due and pictures alone are in the way: a disk that is slower than
// the stream would never have a checkpoint.
//
// A disk that fails or is full stops checkpoints, not the training: it shows in the log and in
// status(), the checkpoints before stay, and what failed is tried again, after 1, 2, 4, ... and at
// last 64 seconds.
//
// Used by one thread, which also uses the learner.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "riffle/run/checkpoint.h"
#include "riffle/run/picture_log.h"
#include "riffle/run/run_folder.h"
#include "riffle/tensors/side_copy.h"
#include "riffle/train/learner.h"

namespace riffle {

class Checkpointer {
 public:
  struct Status {
    std::string last;                 // name of the newest durable checkpoint; empty: none yet
    std::int64_t last_update = 0;     // of that one
    std::int64_t failures = 0;        // of writes, so far
    std::string error;                // of the last write, when it failed
    double stall_s = 0;               // that training stood still for the last checkpoint
    std::uint64_t picture_bytes = 0;  // appended to the picture log so far
  };

  // `log` may have taken up the pictures of checkpoint `last` (empty: none), which the learner
  // then stands at. `learner` must outlive this.
  Checkpointer(const RunFolder& folder, const CheckpointConfig& config, Learner& learner,
               PictureLog log, const std::string& last);
  // Finishes what was begun.
  ~Checkpointer();

  // After each update, and each stream batch while the buffer fills. `due`: it is time for a
  // checkpoint. `seconds`: of training so far.
  void keep_up(bool due, double seconds);
  // Writes a checkpoint unless the newest has all, and waits for it. Throws Error when it fails.
  void finish(double seconds);

  // Until all that was begun is written, or has failed.
  void wait();

  Status status();

 private:
  struct Append {
    std::vector<Slot> slots;
    std::vector<std::uint64_t> arrivals;
    at::Tensor stored;  // where the buffer keeps it: the thread fetches it from a GPU
  };
  using Job = std::variant<Append, Checkpoint>;

  bool hand_over();
  bool catch_up();
  void begin(double seconds);
  void push(Job job);
  std::string present_name() const;

  void run();
  void carry_out(Job& job);
  void write(Checkpoint& checkpoint);
  void remove_old();
  void failed(const Job& job, const std::string& why);

  const RunFolder folder_;
  const CheckpointConfig config_;
  Learner& learner_;

  // Of the learner's thread.
  std::deque<Slot> missing_;      // pictures to be handed over, oldest change first
  std::vector<bool> is_missing_;  // by slot
  bool due_ = false;              // a checkpoint, and it could not be begun
  bool starved_ = false;          // it was due already, and no other one was being written
  std::uint64_t waited_ = 0;      // because a disk was slower than the stream: how often
  double stall_s_ = 0;            // since the last checkpoint

  // Of the writing thread.
  PictureLog log_;
  SideCopy download_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;  // the first is being carried out
  bool checkpoint_waits_ = false;
  bool checkpoint_failed_ = false;
  bool ending_ = false;
  std::vector<Slot> lost_;  // handed over but not on disk
  std::chrono::steady_clock::time_point retry_at_;
  std::chrono::seconds retry_after_;
  Status status_;
  std::thread thread_;
};

}  // namespace riffle
