#include "python/bindings/views_gpu.h"

#include <ATen/ATen.h>
#include <c10/cuda/CUDAGuard.h>

namespace riffle::python {

bool ViewsGpu::fits(const at::Tensor& pictures) const {
  const c10::cuda::CUDAGuard device(pictures.device());
  return pictures.size(1) == pictures.size(2) && pictures.size(0) > 0 &&
         TwoViewsGpu::fits(config_.size, pictures.size(1));
}

at::Tensor ViewsGpu::operator()(const at::Tensor& pictures, std::uint64_t step) {
  const c10::cuda::CUDAGuard device(pictures.device());
  if (!views_ || batch_ != pictures.size(0) || side_ != pictures.size(1)) {
    for (auto& done : done_) done.synchronize();
    batch_ = pictures.size(0);
    side_ = pictures.size(1);
    views_ = std::make_unique<TwoViewsGpu>(config_, seed_, pool_, batch_, side_, ViewLayout::plain,
                                           at::kFloat);
  }
  at::cuda::CUDAEvent& done = done_[next_];
  next_ = (next_ + 1) % done_.size();
  done.synchronize();
  views_->upload(step);
  // TwoViewsGpu has the same memory for every result; who trains may still need the last one.
  const at::Tensor views = views_->render(pictures.contiguous()).clone();
  done.record();
  return views;
}

}  // namespace riffle::python
