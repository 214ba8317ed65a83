// Copies between host and GPU memory that run beside the work queued on the default stream.
//
// For threads that bring pictures to a GPU or fetch them from there while another thread trains.
// Each call waits until its copy is complete. On the CPU nothing is copied. Not thread-safe.
#pragma once

#include <optional>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/Stream.h>

namespace riffle {

class SideCopy {
 public:
  explicit SideCopy(at::Device device);

  // Returns memory to fill and then to pass to to_device(): pinned, which a GPU copies from fast.
  at::Tensor host_memory(at::IntArrayRef shape, at::ScalarType type) const;

  // Returns the tensor on the device, for use on its default stream.
  at::Tensor to_device(const at::Tensor& host);
  // Returns the tensor in host memory as the work queued on the default stream so far leaves it.
  at::Tensor to_host(const at::Tensor& tensor);

 private:
  at::Device device_;
  std::optional<c10::Stream> stream_;  // when the device is a GPU
};

}  // namespace riffle
