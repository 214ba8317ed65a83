#include "riffle/base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace riffle {

struct ThreadPool::State {
  std::mutex caller;  // held by the thread whose loop is running

  std::mutex mutex;  // guards everything below but next
  std::condition_variable wake;
  std::condition_variable idle;
  const std::function<void(std::int64_t)>* work = nullptr;
  std::int64_t count = 0;
  std::uint64_t generation = 0;
  int busy = 0;
  bool stopping = false;
  std::exception_ptr error;

  std::atomic<std::int64_t> next{0};
  std::vector<std::thread> workers;

  void run_turns() {
    try {
      for (auto i = next.fetch_add(1); i < count; i = next.fetch_add(1)) (*work)(i);
    } catch (...) {
      next.store(count);
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
    }
  }

  void serve() {
    std::uint64_t seen = 0;
    std::unique_lock lock(mutex);
    while (true) {
      wake.wait(lock, [&] { return stopping || generation != seen; });
      if (stopping) return;
      seen = generation;
      lock.unlock();
      run_turns();
      lock.lock();
      if (--busy == 0) idle.notify_one();
    }
  }
};

ThreadPool::ThreadPool(int threads) : state_(std::make_unique<State>()) {
  if (threads <= 0) threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  for (int i = 1; i < threads; ++i) state_->workers.emplace_back([this] { state_->serve(); });
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
  }
  state_->wake.notify_all();
  for (auto& worker : state_->workers) worker.join();
}

int ThreadPool::threads() const { return static_cast<int>(state_->workers.size()) + 1; }

void ThreadPool::for_each(std::int64_t count, const std::function<void(std::int64_t)>& work) {
  if (count <= 0) return;
  const std::lock_guard one_loop(state_->caller);
  {
    const std::lock_guard lock(state_->mutex);
    state_->work = &work;
    state_->count = count;
    state_->next = 0;
    state_->error = nullptr;
    state_->busy = static_cast<int>(state_->workers.size());
    ++state_->generation;
  }
  state_->wake.notify_all();
  state_->run_turns();
  std::unique_lock lock(state_->mutex);
  state_->idle.wait(lock, [&] { return state_->busy == 0; });
  state_->work = nullptr;
  if (state_->error) std::rethrow_exception(std::exchange(state_->error, nullptr));
}

}  // namespace riffle
