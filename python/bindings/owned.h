// Objects with threads belong to the process that made them: fork() copies no threads.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "python/bindings/bindings.h"
#include <unistd.h>

#include "riffle/base/error.h"
#include "riffle/base/text.h"

namespace riffle::python {

// Holds an object. Access from a forked process throws Error; there, the object is never destroyed,
// since that would wait for threads that do not exist. It is destroyed without the GIL, which its
// threads may want.
template <typename T>
class Owned {
 public:
  Owned(std::string name, std::shared_ptr<T> object)
      : name_(std::move(name)), object_(std::move(object)) {}
  Owned(Owned&&) = default;
  ~Owned() {
    if (!object_) return;
    if (getpid() != process_) {
      new std::shared_ptr<T>(std::move(object_));
    } else if (PyGILState_Check() != 0) {
      const py::gil_scoped_release release;
      object_.reset();
    }
  }

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

  // Stops the object, waits for calls of other threads to return, as long as there is an
  // interpreter for them to return to, and destroys it; later access throws Error.
  void close() {
    if (object_ && getpid() == process_) {
      const py::gil_scoped_release release;
      object_->stop();
      for (int i = 0; i < kPatience && object_.use_count() > 1; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
    const Owned closing(std::move(*this));
  }

 private:
  static constexpr int kPatience = 1000;

  std::string name_;
  std::shared_ptr<T> object_;
  pid_t process_ = getpid();
};

}  // namespace riffle::python
