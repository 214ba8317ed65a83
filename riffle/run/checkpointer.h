// Writes a run's checkpoints on a thread of its own while training continues.
//
// Between two updates, keep_up() hands the pictures that changed to the thread, which appends them
// to the picture log. So a checkpoint itself only copies weights, features and bookkeeping; the
// rest happens in the background. Memory is bounded: a few stream batches of pictures and one such
// copy.
//
// A checkpoint that is due while the previous one is still being written, or while pictures wait
// for the disk, is made a few updates later. With `wait` (checkpoint.wait), training waits instead.
// It also waits if a second checkpoint is due and only pictures are in the way: otherwise a disk
// that is slower than the stream would never have a checkpoint.
//
// A disk that fails or is full stops checkpoints, not training: the failure is logged and shown by
// status(), earlier checkpoints stay, and what failed is tried again after 1, 2, 4, ... and finally
// every 64 seconds.
//
// Several ranks (riffle/dist) make a checkpoint together: when one is due, all wait until their
// pictures are on disk and tell rank 0 where, which then writes it while training continues. One
// that fails is tried again when the next one is due. Only rank 0 has a status().
//
// Used by one thread, which also uses the learner.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <set>
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
    // The newest durable checkpoint, by name (empty: none yet) and update.
    std::string last;
    std::int64_t last_update = 0;
    // Writes that failed so far.
    std::int64_t failures = 0;
    // Why the last write failed; empty if it did not.
    std::string error;
    // Seconds that the last checkpoint stopped training for.
    double stall_s = 0;
    // Appended to the picture log so far.
    std::uint64_t picture_bytes = 0;
  };

  // `last`: the checkpoint that the learner was restored from, whose pictures `log` has; empty:
  // none. `learner` must outlive this.
  Checkpointer(const RunFolder& folder, const Config& config, Learner& learner, PictureLog log,
               const std::string& last);
  // Finishes the writes that were begun.
  ~Checkpointer();

  // keep_up() and finish() throw LostLock, and nothing more is written, if the folder is no longer
  // the run's (RunFolder::require_in_place()).
  //
  // Must be called after each update, and after each stream batch while the buffer fills. `due`: it
  // is time for a checkpoint. `seconds`: of training so far.
  void keep_up(bool due, double seconds);
  // Writes a checkpoint, unless the newest is of this very update, and waits for it. Throws Error
  // if it fails.
  void finish(double seconds);

  // Returns when all writes that were begun are done or have failed.
  void wait();

  Status status();

 private:
  struct Append {
    std::vector<Slot> slots;
    std::vector<std::uint64_t> arrivals;
    // Where the buffer keeps it: the thread fetches it from a GPU.
    at::Tensor stored;
  };
  using Job = std::variant<Append, Checkpoint>;

  bool hand_over();
  bool catch_up();
  Checkpoint present(double seconds);
  bool make_together(double seconds);
  std::vector<std::int64_t> own_places();
  void push(Job job);
  std::string present_name() const;

  void run();
  void carry_out(Job& job);
  void write(Checkpoint& checkpoint);
  void remove_old();
  void remove_unused_elsewhere(std::set<std::int64_t> needed);
  void failed(const Job& job, const std::string& why);

  const RunFolder folder_;
  const CheckpointConfig config_;
  // Kept in every checkpoint.
  const std::string config_text_;
  Learner& learner_;

  // Used by the learner's thread.
  // Pictures to be handed over, oldest change first.
  std::deque<Slot> missing_;
  std::vector<bool> is_missing_;  // by slot
  // A checkpoint is due and could not be begun.
  bool due_ = false;
  // It was due already when no other one was being written.
  bool starved_ = false;
  // Times that training waited because the disk was slower than the stream.
  std::uint64_t waited_ = 0;
  double stall_s_ = 0;  // since the last checkpoint

  // Used by the writing thread.
  PictureLog log_;
  SideCopy download_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;  // the first one is being done
  bool checkpoint_waits_ = false;
  bool checkpoint_failed_ = false;
  bool ending_ = false;
  std::vector<Slot> lost_;  // handed over, but not on disk
  std::chrono::steady_clock::time_point retry_at_;
  std::chrono::seconds retry_after_;
  Status status_;
  std::thread thread_;
};

}  // namespace riffle
