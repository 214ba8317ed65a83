#include "riffle/tensors/side_copy.h"

#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>

#include "riffle/tensors/gpu_streams.h"

namespace riffle {

SideCopy::SideCopy(at::Device device) : device_(device) {
  if (device.is_cpu()) return;
  device_ = with_index(device);
  stream_ = side_stream(device_);
}

at::Tensor SideCopy::host_memory(at::IntArrayRef shape, at::ScalarType type) const {
  return at::empty(shape, at::TensorOptions().dtype(type).pinned_memory(stream_.has_value()));
}

at::Tensor SideCopy::to_device(const at::Tensor& host) {
  if (!stream_) return host;
  const c10::StreamGuard guard(*stream_);
  at::Tensor there = host.to(device_, /*non_blocking=*/true);
  stream_->synchronize();
  // It is freed where it is used: then its memory may serve again once that stream is done with it.
  there.record_stream(default_stream(device_));
  return there;
}

at::Tensor SideCopy::to_host(const at::Tensor& tensor) {
  if (tensor.is_cpu()) return tensor;
  c10::Event computed(device_.type());
  computed.record(default_stream(device_));
  computed.block(*stream_);
  const c10::StreamGuard guard(*stream_);
  at::Tensor here = host_memory(tensor.sizes(), tensor.scalar_type());
  here.copy_(tensor, /*non_blocking=*/true);
  stream_->synchronize();
  return here;
}

}  // namespace riffle
