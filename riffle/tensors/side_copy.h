// Copies between host and GPU memory that go on beside the work queued on the default stream.
//
// For threads that bring pictures to a GPU or fetch them from there while another thread trains.
// Each call waits until its copy is complete. From and to the CPU nothing is copied. Used by one
// thread.
#pragma once

#include <optional>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/Stream.h>

namespace riffle {

class SideCopy {
 public:
  explicit SideCopy(at::Device device);

  // Memory to fill and then to give to_device(): what a GPU copies from fast.
  at::Tensor host_memory(at::IntArrayRef shape, at::ScalarType type) const;

  // On the device, for use on its default stream.
  at::Tensor to_device(const at::Tensor& host);
  // Of a tensor that work queued on the default stream so far has made.
  at::Tensor to_host(const at::Tensor& tensor);

 private:
  at::Device device_;
  std::optional<c10::Stream> stream_;  // when the device is a GPU
};

}  // namespace riffle
