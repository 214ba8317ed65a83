#include "python/bindings/background.h"

#include <condition_variable>
#include <deque>
#include <vector>

namespace riffle::python {

namespace {

std::mutex abandoned_mutex;
// Never destroyed: a forked process has these without their threads.
std::vector<std::thread>& abandoned = *new std::vector<std::thread>;

}  // namespace

struct Background::Queue {
  std::mutex working;  // held by whoever does work
  std::mutex mutex;    // guards what follows
  std::condition_variable changed;
  std::deque<std::function<void()>> work;
  bool stopping = false;

  void serve() {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [this] { return !work.empty() || stopping; });
      if (work.empty()) return;
      auto next = std::move(work.front());
      lock.unlock();
      {
        const std::lock_guard turn(working);
        next();
      }
      next = nullptr;  // what it owns must not live on while more work is awaited
      lock.lock();
      work.pop_front();
    }
  }
};

Background::Background()
    : queue_(std::make_shared<Queue>()), thread_([queue = queue_] { queue->serve(); }) {}

Background::~Background() {
  if (!thread_.joinable()) return;  // abandoned
  stop();
  if (is_own_thread()) {
    thread_.detach();
  } else if (PyGILState_Check() != 0) {
    const py::gil_scoped_release release;
    thread_.join();
  } else {
    thread_.join();
  }
}

void Background::stop() {
  {
    const std::lock_guard lock(queue_->mutex);
    queue_->stopping = true;
  }
  queue_->changed.notify_all();
}

void Background::abandon() {
  stop();
  const std::lock_guard lock(abandoned_mutex);
  abandoned.push_back(std::move(thread_));
}

void Background::wait_for_abandoned() {
  const py::gil_scoped_release release;
  const std::lock_guard lock(abandoned_mutex);
  for (std::thread& thread : abandoned) thread.join();
  abandoned.clear();
}

void Background::check_interrupt() {
  const py::gil_scoped_acquire acquire;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

std::unique_lock<std::mutex> Background::take_turn() {
  if (is_own_thread()) return {};
  const std::lock_guard lock(queue_->mutex);
  if (!queue_->work.empty()) return {};
  return std::unique_lock(queue_->working, std::try_to_lock);
}

void Background::give(std::function<void()> work) {
  {
    const std::lock_guard lock(queue_->mutex);
    queue_->work.push_back(std::move(work));
  }
  queue_->changed.notify_all();
}

}  // namespace riffle::python
