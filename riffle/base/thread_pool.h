// A fixed set of worker threads for loops whose iterations do not depend on one another.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace riffle {

// Thread-safe; one loop runs at a time, further callers wait. The calling thread works too, so a
// pool of one thread starts none. Which thread does which iteration is not defined: an iteration
// must depend on its index alone.
class ThreadPool {
 public:
  // 0 threads: one per core.
  explicit ThreadPool(int threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const;

  // Calls work(i) for i in [0, count) and returns when all are done. The first exception thrown by
  // an iteration is rethrown here; iterations not begun by then are dropped.
  void for_each(std::int64_t count, const std::function<void(std::int64_t)>& work);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace riffle
