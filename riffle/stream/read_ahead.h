// Numbered items, processed by threads ahead of the reader and handed out in order.
//
// Results depend on the items alone, never on the number of threads or on timing. Memory is
// bounded: no new item is begun while the finished ones take `max_bytes` or more, so at most that
// plus one item per thread is held. `work` is called from several threads at once; the rest of the
// class is not thread-safe. An exception thrown by `work` for an item is rethrown by the take() of
// that item.
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

  // With 0 threads, take() does all the work itself.
  ReadAhead(int threads, std::uint64_t max_bytes, Work work, Weight weight)
      : max_bytes_(max_bytes), work_(std::move(work)), weight_(std::move(weight)) {
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

  // Forgets all that was done ahead; the next take() returns item `first`. Items from `end` on are
  // not begun.
  void start(std::int64_t first, std::int64_t end) {
    {
      const std::lock_guard lock(mutex_);
      ++starts_;
      to_begin_ = to_take_ = first;
      end_ = end;
      finished_.clear();
      finished_bytes_ = 0;
    }
    may_begin_.notify_all();
  }

  // Returns the result of the next item. Requires that it is before the end.
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
    may_begin_.notify_one();
    if (item.error) std::rethrow_exception(item.error);
    return std::move(*item.result);
  }

 private:
  // Keeps the threads from running on past a source that is broken for good.
  static constexpr std::uint64_t kErrorWeight = std::uint64_t{1} << 20;

  struct Finished {
    std::optional<Result> result;
    std::exception_ptr error;
    std::uint64_t bytes = 0;
  };

  bool may_begin() const {
    // The item that the reader waits for is always begun, however much the others take.
    return to_begin_ < end_ && (finished_bytes_ < max_bytes_ || to_begin_ == to_take_);
  }

  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      may_begin_.wait(lock, [&] { return stopping_ || may_begin(); });
      if (stopping_) return;
      const std::int64_t item = to_begin_++;
      const std::int64_t start = starts_;
      // A thread that begins wakes the next one that may: to wake all of them for every item costs
      // more than many an item does.
      if (may_begin()) may_begin_.notify_one();
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
      if (start != starts_) continue;  // the reader went elsewhere meanwhile
      finished_bytes_ += finished.bytes;
      finished_.emplace(item, std::move(finished));
      has_finished_.notify_one();
    }
  }

  const std::uint64_t max_bytes_;
  const Work work_;
  const Weight weight_;
  std::mutex mutex_;
  std::condition_variable may_begin_, has_finished_;
  std::map<std::int64_t, Finished> finished_;
  std::uint64_t finished_bytes_ = 0;
  std::int64_t to_begin_ = 0, to_take_ = 0, end_ = 0;
  std::int64_t starts_ = 0;  // calls of start()
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace riffle
