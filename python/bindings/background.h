// Work in a thread of its own, so that the thread that waits for it can answer Ctrl-C.
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "python/bindings/bindings.h"

namespace riffle::python {

// Thread-safe: work is done in the order in which it was given.
class Background {
 public:
  Background();
  // Waits, without the GIL, for the work that was given, unless it is a part of that work.
  ~Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  // Does `work` without the GIL and returns its result or throws what it threw. Ctrl-C ends the
  // wait with KeyboardInterrupt after calling `interrupted`; the work continues, and must therefore
  // own all that it uses. May be called by work.
  template <typename Work>
  auto run(Work work, const std::function<void()>& interrupted = {}) {
    using Result = decltype(work());
    const py::gil_scoped_release release;
    if (is_own_thread()) return work();
    const auto task = std::make_shared<std::packaged_task<Result()>>(std::move(work));
    auto result = task->get_future();
    give([task] { (*task)(); });
    while (result.wait_for(kPatience) != std::future_status::ready) {
      try {
        check_interrupt();
      } catch (...) {
        if (interrupted) interrupted();
        throw;
      }
    }
    return result.get();
  }

  // Does `work`, which must be short, in the calling thread, if there is no other to wait for.
  template <typename Work>
  auto run_short(Work work) {
    {
      const py::gil_scoped_release release;
      if (const auto turn = take_turn()) return work();
    }
    return run(std::move(work));
  }

  // Does `work` as run() does, in a thread of its own. After Ctrl-C nobody waits for the end of it
  // but wait_for_abandoned().
  template <typename Work>
  static auto run_once(Work work, const std::function<void()>& interrupted) {
    Background background;
    try {
      return background.run(std::move(work), interrupted);
    } catch (const py::error_already_set&) {
      background.abandon();
      throw;
    }
  }
  static void wait_for_abandoned();

 private:
  static constexpr std::chrono::milliseconds kPatience{50};

  // Raises KeyboardInterrupt if Ctrl-C was pressed.
  static void check_interrupt();
  bool is_own_thread() const { return std::this_thread::get_id() == thread_.get_id(); }
  // Returns the right to work now, or nothing while there is other work.
  std::unique_lock<std::mutex> take_turn();
  void give(std::function<void()> work);
  void stop();
  void abandon();

  struct Queue;
  // The thread's too, which may outlive this.
  std::shared_ptr<Queue> queue_;
  std::thread thread_;
};

// What work has found but nobody has taken yet, because Ctrl-C ended the wait. Thread-safe.
template <typename T>
class Pending {
 public:
  bool is_there() {
    const std::lock_guard lock(mutex_);
    return found_.has_value();
  }
  void put(T found) {
    const std::lock_guard lock(mutex_);
    found_ = std::move(found);
  }
  std::optional<T> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(found_, std::nullopt);
  }

 private:
  std::mutex mutex_;
  std::optional<T> found_;
};

}  // namespace riffle::python
