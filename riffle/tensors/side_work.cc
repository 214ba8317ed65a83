#include "riffle/tensors/side_work.h"

#include <ATen/ATen.h>
#include <c10/core/StreamGuard.h>

#include "riffle/tensors/gpu_streams.h"

namespace riffle {

SideWork::SideWork(at::Device device) : device_(device) {
  if (device.is_cpu()) return;
  device_ = with_index(device);
  stream_ = side_stream(device_);
  c10::Event before(device_.type());
  before.record(default_stream(device_));
  before.block(*stream_);
}

SideWork::Queued SideWork::queue(const std::function<at::Tensor()>& work) {
  Queued queued;
  if (!stream_) {
    queued.made_ = work();
    return queued;
  }
  const c10::StreamGuard guard(*stream_);
  queued.made_ = work();
  queued.done_.emplace(device_.type());
  queued.done_->record(*stream_);
  return queued;
}

at::Tensor SideWork::Queued::result() const {
  if (!done_) return made_;
  const c10::Stream used_on = default_stream(made_.device());
  done_->block(used_on);
  // It is freed where it is used: then its memory may serve again once that stream is done with it.
  made_.record_stream(used_on);
  return made_;
}

}  // namespace riffle
