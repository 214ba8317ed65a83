// Objects with threads belong to the process that made them: fork() copies no threads.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "python/bindings/bindings.h"
#include <unistd.h>

#include "riffle/base/error.h"
#include "riffle/base/text.h"

namespace riffle::python {

// Holds an object. Access from a forked process throws Error; there, the object is never destroyed,
// since that would wait for threads that do not exist. It is destroyed without the GIL, which its
// threads may want, whoever holds it last. The methods need the GIL.
template <typename T>
class Owned {
 public:
  Owned(std::string name, std::shared_ptr<T> object)
      : name_(std::move(name)), object_(destroyed_without_gil(std::move(object))) {}
  Owned(Owned&&) = default;
  ~Owned() { leak_in_a_fork(); }

  // A call holds the object until it returns, though another thread may close it meanwhile.
  std::shared_ptr<T> operator->() const { return get(); }
  std::shared_ptr<T> get() const {
    if (getpid() != process_) {
      throw Error(cat("this ", name_, " belongs to another process: a fork, such as a DataLoader ",
                      "worker, has none of its threads. Make it in the worker, or use no workers: ",
                      "riffle reads ahead by itself"));
    }
    if (!object_) throw Error(cat("this ", name_, " was closed"));
    return object_;
  }

  // Ends the waits of other threads' calls.
  void stop() const {
    const auto object = get();
    const py::gil_scoped_release release;
    object->stop();
  }

  // Stops the object, waits for calls of other threads to return, as long as there is an
  // interpreter for them to return to, and destroys it; access from then on throws Error.
  void close() {
    leak_in_a_fork();
    const auto object = std::exchange(object_, nullptr);
    if (!object) return;
    const py::gil_scoped_release release;
    object->stop();
    for (int i = 0; i < kPatience && object.use_count() > 1; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

 private:
  static constexpr int kPatience = 1000;

  static std::shared_ptr<T> destroyed_without_gil(std::shared_ptr<T> object) {
    T* const held = object.get();
    return {held, [object = std::move(object)](T*) mutable {
              std::optional<py::gil_scoped_release> release;
              if (PyGILState_Check() != 0) release.emplace();
              object.reset();
            }};
  }

  void leak_in_a_fork() {
    if (object_ && getpid() != process_) new std::shared_ptr<T>(std::move(object_));
  }

  std::string name_;
  std::shared_ptr<T> object_;
  pid_t process_ = getpid();
};

}  // namespace riffle::python
