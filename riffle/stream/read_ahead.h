// Work on numbered items done ahead of the reader by threads, handed out in order.
//
// What comes out depends on the items alone, never on the number of threads or on timing. Memory is
// bounded: no new item is begun while the finished ones weigh `most_bytes` or more, so at most that
// plus one item per thread is held. The work is called from several threads at once; the rest of
// the class is used by one thread. An exception thrown by the work for an item comes out of the
// take() of that item.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace riffle {

template <typename Result>
class ReadAhead {
 public:
  using Work = std::function<Result(std::int64_t item)>;
  using Weight = std::function<std::uint64_t(const Result&)>;

  // 0 threads: the work is done in take(), nothing ahead.
  ReadAhead(int threads, std::uint64_t most_bytes, Work work, Weight weight)
      : most_bytes_(most_bytes), work_(std::move(work)), weight_(std::move(weight)) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
  }

  // Waits for the items in hand.
  ~ReadAhead() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    may_begin_.notify_all();
    for (auto& thread : threads_) thread.join();
  }
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  // Forgets all that was done ahead; the following take() gives item `first`. Items from `end` on
  // are not begun.
  void start(std::int64_t first, std::int64_t end) {
    {
      const std::lock_guard lock(mutex_);
      ++course_;
      to_begin_ = to_take_ = first;
      end_ = end;
      finished_.clear();
      finished_bytes_ = 0;
    }
    may_begin_.notify_all();
  }

  // The result of the following item, which must lie before the end.
  Result take() {
    if (threads_.empty()) return work_(to_take_++);
    Finished item;
    {
      std::unique_lock lock(mutex_);
      has_finished_.wait(lock, [&] { return finished_.contains(to_take_); });
      auto node = finished_.extract(to_take_++);
      item = std::move(node.mapped());
      finished_bytes_ -= item.bytes;
    }
    may_begin_.notify_all();
    if (item.error) std::rethrow_exception(item.error);
    return std::move(*item.result);
  }

 private:
  // So that the threads do not go on for ever past a source that is broken for good.
  static constexpr std::uint64_t kErrorWeight = std::uint64_t{1} << 20;

  struct Finished {
    std::optional<Result> result;
    std::exception_ptr error;
    std::uint64_t bytes = 0;
  };

  bool may_begin() const {
    // The item that the reader waits for is always begun, whatever the others weigh.
    return to_begin_ < end_ && (finished_bytes_ < most_bytes_ || to_begin_ == to_take_);
  }

  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      may_begin_.wait(lock, [&] { return stopping_ || may_begin(); });
      if (stopping_) return;
      const std::int64_t item = to_begin_++;
      const std::int64_t course = course_;
      lock.unlock();
      Finished finished;
      try {
        finished.result = work_(item);
        finished.bytes = weight_(*finished.result);
      } catch (...) {
        finished.error = std::current_exception();
        finished.bytes = kErrorWeight;
      }
      lock.lock();
      if (course != course_) continue;  // the reader went elsewhere meanwhile
      finished_bytes_ += finished.bytes;
      finished_.emplace(item, std::move(finished));
      has_finished_.notify_one();
    }
  }

  const std::uint64_t most_bytes_;
  const Work work_;
  const Weight weight_;
  std::mutex mutex_;
  std::condition_variable may_begin_, has_finished_;
  std::map<std::int64_t, Finished> finished_;
  std::uint64_t finished_bytes_ = 0;
  std::int64_t to_begin_ = 0, to_take_ = 0, end_ = 0;
  std::int64_t course_ = 0;  // counts the calls of start()
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace riffle
