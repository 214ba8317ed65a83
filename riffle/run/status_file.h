// status.json in a run folder: what the process that trains is doing right now, for whoever
// watches.
//
// A thread of its own writes it once a second, also while training waits for its stream, so the
// file's time says whether the process lives. Nothing depends on it: it is replaced in one step but
// not flushed, and a disk that does not take it is ignored.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "riffle/run/run_folder.h"

namespace riffle {

struct RunStatus {
  // filling, training, or how it ended: done, stopped, failed.
  std::string state = "filling";
  std::int64_t update = 0;
  // Samples that entered the buffer, and all that the stream gave, those read ahead included.
  std::int64_t samples_used = 0;
  std::int64_t samples_delivered = 0;
  // For how long the stream has been waited for, and for how long its source has been out of reach
  // and tried again; 0: it is not.
  double seconds_since_sample = 0;
  double seconds_unreachable = 0;
  std::int64_t buffer_size = 0;
  std::int64_t buffer_capacity = 0;
  // Of writing, in seconds since 1970.
  double time = 0;
};

class StatusFile {
 public:
  // `complete` fills in what changes by itself, just before each write; it is called by the thread.
  StatusFile(const RunFolder& folder, std::function<void(RunStatus&)> complete);
  // Writes the last status.
  ~StatusFile();
  StatusFile(const StatusFile&) = delete;

  // Calls change(status). Cheap: nothing is written here. Safe from any thread.
  template <typename Change>
  void set(const Change& change) {
    const std::lock_guard lock(mutex_);
    change(status_);
  }

 private:
  void run();
  void write();
  void try_to_write();

  const RunFolder folder_;
  const std::function<void(RunStatus&)> complete_;
  std::mutex mutex_;
  std::condition_variable ending_changed_;
  RunStatus status_;
  bool ending_ = false;
  std::thread thread_;
};

// Returns what the file says; nothing if there is none, or if it is not one.
std::optional<RunStatus> read_status(const RunFolder& folder);

}  // namespace riffle
