// Reads a stream ahead of the learner: a thread takes samples, brings them to the stored size and
// into the memory they will be kept in, and hands over whole batches.
//
// Bounded: at most `ahead` batches wait; then the reader waits too, and what the source does
// meanwhile is the source's affair. Nothing is dropped here, so the batches are the same whatever
// the timing. From the first take until the end of this object the stream belongs to the thread;
// the destructor stops the stream, and waits for a next() that does not heed stop().
//
// take() and take_arrived() are for one thread, stop() for any.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <ATen/core/Tensor.h>

#include "riffle/base/error.h"
#include "riffle/base/thread_pool.h"
#include "riffle/stream/stream.h"
#include "riffle/tensors/side_copy.h"

namespace riffle {

struct StreamBatch {
  std::vector<Sample> samples;                  // without their pictures, which are in
  at::Tensor pictures;                          // [batch, size, size, 3] uint8
  std::string position;                         // of the stream, behind the last sample
  std::map<std::string, std::int64_t> skipped;  // by the stream until then
};

// What the stream threw, whatever it was. All that was taken before stands: who took it can save
// what came of it, and go on from there once the cause is repaired.
class StreamError : public Error {
 public:
  using Error::Error;
};

class Intake {
 public:
  // `stream` must outlive this. The thread begins with the first take. `device`: where the pictures
  // of a batch go.
  Intake(Stream& stream, std::int64_t batch, int picture_size, std::size_t ahead,
         at::Device device = at::kCPU);
  ~Intake();

  // The following batch, waiting for it. Nothing when the stream ended (what is less than a batch
  // is left out) or was stopped. Throws StreamError for what the stream threw, once the batches
  // before it are taken.
  std::optional<StreamBatch> take();

  // All batches that are there now; does not wait. Throws as take() does, when none is left.
  std::vector<StreamBatch> take_arrived();
  // No batch is there and none will come.
  bool ended();

  // Stops the stream and ends all waiting.
  void stop();

  struct Waits {
    double learner_s = 0;  // take() waited for the stream
    double reader_s = 0;   // the stream waited for room
  };
  Waits waits();

 private:
  void start();
  void run();
  std::optional<StreamBatch> read_batch();
  void rethrow_error();

  Stream& stream_;
  const std::int64_t batch_;
  const int picture_size_;
  const std::size_t ahead_;

  // Used by the thread alone.
  ThreadPool resizing_;
  SideCopy upload_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<StreamBatch> batches_;
  bool stopping_ = false;
  bool finished_ = false;  // the thread puts no further batch
  std::exception_ptr error_;
  Waits waits_;
  std::optional<std::chrono::steady_clock::time_point> held_since_;  // the reader waits for room
  std::thread thread_;
};

}  // namespace riffle
