#include "riffle/model/batch_norm_on_gpu.h"

#if RIFFLE_CUDA

#include <optional>

#include <c10/cuda/CUDAStream.h>
#include <torch/torch.h>

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/model/batch_norm_gpu.h"

namespace riffle {
namespace {

namespace gpu = batch_norm_gpu;

void checked(cudaError_t status) {
  if (status == cudaSuccess) return;
  throw Error(cat("batch norm on the GPU failed: ", cudaGetErrorString(status)),
              ErrorKind::failure);
}

cudaStream_t current_stream() { return c10::cuda::getCurrentCUDAStream().stream(); }

gpu::Shape shape_of(const torch::Tensor& x, std::int64_t views) {
  return {
      .views = static_cast<int>(views),
      .rows = x.numel() / x.size(1) / views,
      .channels = static_cast<int>(x.size(1)),
      .number = x.scalar_type() == torch::kFloat32 ? gpu::Number::float32 : gpu::Number::bfloat16};
}

torch::Tensor in_memory_order(const torch::Tensor& x) {
  return x.dim() == 4 ? x.contiguous(torch::MemoryFormat::ChannelsLast) : x.contiguous();
}

const float* floats_or_null(const torch::Tensor& x) {
  return x.defined() ? x.const_data_ptr<float>() : nullptr;
}

const void* data_or_null(const torch::Tensor& x) {
  return x.defined() ? x.const_data_ptr() : nullptr;
}

// Mean, inverse deviation, scale and shift: [4, views, channels].
gpu::Statistics statistics_in(const torch::Tensor& all) {
  float* data = all.data_ptr<float>();
  const std::int64_t plane = all.stride(0);
  return {data, data + plane, data + 2 * plane, data + 3 * plane};
}

torch::Tensor float_scratch(const torch::Tensor& x, torch::IntArrayRef shape) {
  return torch::empty(shape, x.options().dtype(torch::kFloat32).memory_format(c10::nullopt));
}

torch::Tensor applied(const gpu::Shape& shape, const torch::Tensor& x,
                      const torch::Tensor& residual, const float* scale, const float* shift,
                      bool relu) {
  torch::Tensor y = torch::empty_like(x);
  checked(gpu::apply(shape, x.const_data_ptr(), data_or_null(residual), scale, shift, relu,
                     y.data_ptr(), current_stream()));
  return y;
}

class GpuBatchNorm : public torch::autograd::Function<GpuBatchNorm> {
 public:
  static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& x,
                               const std::optional<torch::Tensor>& weight,
                               const std::optional<torch::Tensor>& bias,
                               const std::optional<torch::Tensor>& residual,
                               const BatchNormTensors& norm, std::int64_t views, bool relu) {
    const torch::Tensor from = in_memory_order(x);
    const torch::Tensor add = residual ? in_memory_order(*residual) : torch::Tensor();
    const gpu::Shape shape = shape_of(from, views);
    const torch::Tensor partial =
        float_scratch(from, {2, views, gpu::parts_of(shape), shape.channels});
    const torch::Tensor all = float_scratch(from, {4, views, shape.channels});
    const gpu::Statistics statistics = statistics_in(all);
    checked(gpu::statistics(shape, from.const_data_ptr(), floats_or_null(norm.weight),
                            floats_or_null(norm.bias), static_cast<float>(norm.momentum),
                            static_cast<float>(norm.epsilon), norm.running_mean.data_ptr<float>(),
                            norm.running_var.data_ptr<float>(), partial.data_ptr<float>(),
                            statistics, current_stream()));
    const torch::Tensor y = applied(shape, from, add, statistics.scale, statistics.shift, relu);
    // Without a residual the output's sign follows from x, so that y need not be kept for it.
    context->save_for_backward(
        {from, weight.value_or(torch::Tensor()), relu && residual ? y : torch::Tensor(), all});
    context->saved_data["views"] = views;
    context->saved_data["relu"] = relu;
    context->saved_data["residual"] = residual.has_value();
    context->saved_data["affine"] = bias.has_value();
    return y;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const torch::Tensor& x = saved[0];
    const torch::Tensor& y = saved[2];
    const torch::Tensor grad = in_memory_order(gradients[0]);
    const bool relu = context->saved_data["relu"].toBool();
    const bool has_residual = context->saved_data["residual"].toBool();
    const std::int64_t views = context->saved_data["views"].toInt();
    const gpu::Shape shape = shape_of(x, views);

    const torch::Tensor partial =
        float_scratch(x, {2, views, gpu::parts_of(shape), shape.channels});
    const torch::Tensor coefficients = float_scratch(x, {3, views, shape.channels});
    torch::Tensor gamma_gradient, beta_gradient;
    if (context->saved_data["affine"].toBool()) {
      gamma_gradient = float_scratch(x, {shape.channels});
      beta_gradient = float_scratch(x, {shape.channels});
    }
    // Without a ReLU the residual's gradient is the output's own.
    torch::Tensor residual_gradient;
    if (has_residual) residual_gradient = relu ? torch::empty_like(grad) : grad;
    torch::Tensor x_gradient = torch::empty_like(x);
    const gpu::Gradients out{
        .x = x_gradient.data_ptr(),
        .gamma = gamma_gradient.defined() ? gamma_gradient.data_ptr<float>() : nullptr,
        .beta = beta_gradient.defined() ? beta_gradient.data_ptr<float>() : nullptr,
        .masked = has_residual && relu ? residual_gradient.data_ptr() : nullptr};
    checked(gpu::gradients(shape, grad.const_data_ptr(), x.const_data_ptr(), data_or_null(y), relu,
                           floats_or_null(saved[1]), statistics_in(saved[3]),
                           partial.data_ptr<float>(), coefficients.data_ptr<float>(), out,
                           current_stream()));
    return {x_gradient, gamma_gradient, beta_gradient, residual_gradient, {}, {}, {}};
  }
};

std::optional<torch::Tensor> if_defined(const torch::Tensor& x) {
  return x.defined() ? std::optional(x) : std::nullopt;
}

}  // namespace

bool fits_gpu_kernels(const BatchNormTensors& norm, const torch::Tensor& x) {
  if (!x.is_cuda() || norm.running_mean.scalar_type() != torch::kFloat32) return false;
  if (x.scalar_type() == torch::kFloat32)
    return x.size(1) % gpu::group_of(gpu::Number::float32) == 0;
  return x.scalar_type() == torch::kBFloat16 &&
         x.size(1) % gpu::group_of(gpu::Number::bfloat16) == 0;
}

torch::Tensor batch_norm_on_gpu(const BatchNormTensors& norm, const torch::Tensor& x, bool training,
                                std::int64_t views, bool relu, const torch::Tensor& residual) {
  if (training) {
    return GpuBatchNorm::apply(x, if_defined(norm.weight), if_defined(norm.bias),
                               if_defined(residual), norm, views, relu);
  }
  const torch::Tensor from = in_memory_order(x);
  torch::Tensor scale = (norm.running_var + norm.epsilon).rsqrt_();
  if (norm.weight.defined()) scale.mul_(norm.weight);
  torch::Tensor shift = -norm.running_mean * scale;
  if (norm.bias.defined()) shift.add_(norm.bias);
  return applied(shape_of(from, 1), from, residual.defined() ? in_memory_order(residual) : residual,
                 scale.const_data_ptr<float>(), shift.const_data_ptr<float>(), relu);
}

}  // namespace riffle

#else

#include <stdexcept>

namespace riffle {

bool fits_gpu_kernels(const BatchNormTensors&, const torch::Tensor&) { return false; }

torch::Tensor batch_norm_on_gpu(const BatchNormTensors&, const torch::Tensor&, bool, std::int64_t,
                                bool, const torch::Tensor&) {
  throw std::logic_error("a build without CUDA has no batch norm for the GPU");
}

}  // namespace riffle

#endif
