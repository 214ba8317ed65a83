// Work on a GPU that runs beside what is queued on the default stream, not behind it.
//
// On the CPU work is done at once. Not thread-safe.
#pragma once

#include <functional>
#include <optional>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

namespace riffle {

class SideWork {
 public:
  // What is queued on the default stream so far comes before all work.
  explicit SideWork(at::Device device);

  // Work that was queued.
  class Queued {
   public:
    // Returns its result for use on the default stream, whose later work waits for it. The host
    // does not.
    at::Tensor result() const;

   private:
    friend class SideWork;
    at::Tensor made_;
    std::optional<c10::Event> done_;  // when the device is a GPU
  };

  // Queues what `work` queues, behind earlier work of this object.
  Queued queue(const std::function<at::Tensor()>& work);

 private:
  at::Device device_;
  std::optional<c10::Stream> stream_;  // when the device is a GPU
};

}  // namespace riffle
