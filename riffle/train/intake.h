// Reads a stream ahead of the learner: a thread takes samples, brings them to the stored size and
// into the memory they will be kept in, and hands over whole batches.
//
// Bounded: at most `ahead` batches wait; then the reader waits too, and the source copes with that
// as it does. Nothing is dropped here, so the batches are the same whatever the timing. From the
// first take until the end of this object the stream belongs to the thread; the destructor stops
// the stream, and waits for a next() that does not heed stop().
//
// Several readers may divide a stream: each hands over its own samples and passes over the others',
// so that all are at the same place after the same batches (divided_reader.h).
//
// take(), in_doubt() and read_again() are for one thread, the others for any.
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
#include "riffle/stream/divided_reader.h"
#include "riffle/stream/stream.h"
#include "riffle/tensors/side_copy.h"

namespace riffle {

struct StreamBatch {
  // Without their pictures.
  std::vector<Sample> samples;
  // [batch, size, size, 3] uint8.
  at::Tensor pictures;
  // Of the stream, after the last sample.
  std::string position;
  // What the stream has skipped until then, by reason.
  std::map<std::string, std::int64_t> skipped;
  // Stream::period() then.
  std::optional<std::int64_t> period;
};

// Whatever the stream threw. Batches taken before it are valid: the run can be saved, and continued
// once the cause is repaired.
class StreamError : public Error {
 public:
  using Error::Error;
};

class Intake {
 public:
  // `stream` must outlive this. The thread starts with the first take. `device`: where the pictures
  // of a batch go. `share`: which of the batches are taken; its `batch` is not used. Less than one
  // batch for each reader is left out.
  Intake(Stream& stream, std::int64_t batch, int picture_size, std::size_t ahead,
         at::Device device = at::kCPU, StreamShare share = {});
  ~Intake();

  // Waits for the next batch and returns it, or nothing if the stream ended (less than a batch is
  // left out) or was stopped. Throws StreamError for what the stream threw, once the batches before
  // it are taken.
  std::optional<StreamBatch> take();

  // Returns whether the last take() returned nothing because of a picture that cannot be decoded,
  // which the other readers do not know of yet. All of them must then call read_again(), also those
  // that got a batch.
  bool in_doubt() const { return last_in_doubt_; }
  // Reads again what the last take() returned, with all pictures of this and the next `batches` - 1
  // decoded by every reader.
  void read_again(std::int64_t batches);

  // Returns the number of batches that take() returns without waiting; 1 if it would throw, or
  // return nothing for a doubt.
  std::size_t ready();
  // Returns whether no batch is ready and none will come.
  bool ended();
  // Returns the number of samples after the last whole batch, which are in none; 0 before the end.
  std::int64_t left_out();

  // Stops the stream and ends all waiting.
  void stop();

  struct Waits {
    double learner_s = 0;  // take() waited for the stream
    double reader_s = 0;   // the reader waited for room
  };
  Waits waits();

  struct Arrivals {
    // Samples that the stream gave so far, those read ahead included.
    std::int64_t samples = 0;
    // For how long the reader has waited for the next one; 0 while the reader waits for room, and
    // after the end.
    double seconds_since_last = 0;
    // Stream::unreachable_s().
    double unreachable_s = 0;
  };
  // Safe from any thread.
  Arrivals arrivals();

 private:
  void start();
  void run();
  // Returns nothing at the end, in doubt, and once it is to be read again.
  std::optional<StreamBatch> read_batch();
  void rethrow_error();

  struct Place {
    std::string position;
    std::int64_t samples = 0;
  };
  struct Again {
    std::string position;
    std::int64_t batches;
  };

  Stream& stream_;
  const std::int64_t batch_;
  const int picture_size_;
  const std::size_t ahead_;
  const StreamShare share_;

  // Used by the thread alone.
  DividedReader reader_;
  ThreadPool resizing_;
  SideCopy upload_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<StreamBatch> batches_;
  bool stopping_ = false;
  bool finished_ = false;       // the thread adds no further batch unless it is told to read again
  bool in_doubt_ = false;       // that is why
  std::optional<Again> again_;  // what the thread is told
  // Of what the last take() returned.
  Place last_began_, last_ended_;
  bool last_in_doubt_ = false;
  std::int64_t left_out_ = 0;
  std::exception_ptr error_;
  Waits waits_;
  std::int64_t samples_ = 0;
  // When the reader last got a sample, or room for one.
  std::chrono::steady_clock::time_point last_sample_ = std::chrono::steady_clock::now();
  // While the reader waits for room.
  std::optional<std::chrono::steady_clock::time_point> held_since_;
  std::thread thread_;
};

}  // namespace riffle
