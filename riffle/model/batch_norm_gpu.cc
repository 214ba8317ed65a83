#include "riffle/model/batch_norm_gpu.h"

#include <optional>

#include <c10/cuda/CUDAStream.h>
#include <torch/autograd.h>
#include <torch/types.h>

#include "riffle/model/batch_norm_cuda.h"
#include "riffle/model/batch_norm_pool_cuda.h"
#include "riffle/tensors/check_cuda.h"

namespace riffle {
namespace {

namespace gpu = batch_norm_cuda;

void checked(cudaError_t status) { check_cuda(status, "batch norm"); }

cudaStream_t current_stream() { return c10::cuda::getCurrentCUDAStream().stream(); }

gpu::Shape shape_of(const torch::Tensor& x, std::int64_t views) {
  return {.views = static_cast<int>(views),
          .rows = x.numel() / x.size(1) / views,
          .channels = static_cast<int>(x.size(1)),
          .number = x.scalar_type() == torch::kFloat32 ? Number::float32 : Number::bfloat16};
}

torch::Tensor in_memory_order(const torch::Tensor& x) {
  return x.dim() == 4 ? x.contiguous(torch::MemoryFormat::ChannelsLast) : x.contiguous();
}

const float* floats_or_null(const torch::Tensor& x) {
  return x.defined() ? x.const_data_ptr<float>() : nullptr;
}

float* mutable_floats_or_null(const torch::Tensor& x) {
  return x.defined() ? x.data_ptr<float>() : nullptr;
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

torch::Tensor partial_sums(const torch::Tensor& x, const gpu::Shape& shape) {
  return float_scratch(x, {2, shape.views, gpu::parts_of(shape), shape.channels});
}

// What the first half of a backward pass fills.
struct Gradients {
  Gradients(const torch::Tensor& x, const gpu::Shape& shape, bool affine)
      : partial(partial_sums(x, shape)),
        coefficients(float_scratch(x, {3, shape.views, shape.channels})) {
    if (!affine) return;
    gamma = float_scratch(x, {shape.channels});
    beta = float_scratch(x, {shape.channels});
  }
  gpu::Sums sums(void* masked) const {
    return {.coefficients = coefficients.data_ptr<float>(),
            .gamma = mutable_floats_or_null(gamma),
            .beta = mutable_floats_or_null(beta),
            .masked = masked};
  }

  torch::Tensor partial, coefficients;
  torch::Tensor gamma, beta;  // undefined where they are not learned
};

torch::Tensor applied(const gpu::Shape& shape, const torch::Tensor& x,
                      const torch::Tensor& residual, const float* scale, const float* shift,
                      bool relu) {
  torch::Tensor y = torch::empty_like(x);
  checked(gpu::apply(shape, x.const_data_ptr(), data_or_null(residual), scale, shift, relu,
                     y.data_ptr(), current_stream()));
  return y;
}

// Returns each view's statistics of this rank's rows; the running ones follow them.
torch::Tensor own_statistics(const BatchNormTensors& norm, const torch::Tensor& x,
                             const gpu::Shape& shape) {
  const torch::Tensor partial = partial_sums(x, shape);
  torch::Tensor all = float_scratch(x, {4, shape.views, shape.channels});
  checked(gpu::statistics(shape, x.const_data_ptr(), floats_or_null(norm.weight),
                          floats_or_null(norm.bias), static_cast<float>(norm.momentum),
                          static_cast<float>(norm.epsilon), norm.running_mean.data_ptr<float>(),
                          norm.running_var.data_ptr<float>(), partial.data_ptr<float>(),
                          statistics_in(all), current_stream()));
  return all;
}

// Returns each view's statistics, of the rows of all ranks; the running ones follow them. What is
// made of the statistics of each rank is as small as they are.
torch::Tensor batch_statistics(const BatchNormTensors& norm, const torch::Tensor& x,
                               const gpu::Shape& shape) {
  if (norm.ranks == nullptr) return own_statistics(norm, x, shape);
  BatchNormTensors of_rank = norm;
  of_rank.running_mean = norm.running_mean.clone();
  of_rank.running_var = norm.running_var.clone();
  const torch::Tensor own = own_statistics(of_rank, x, shape).to(torch::kFloat64);
  const torch::Tensor moments = moments_of_all(
      torch::stack({own[0], own[1].square().reciprocal() - norm.epsilon}, 1), *norm.ranks);
  const torch::Tensor mean = moments.select(1, 0), variance = moments.select(1, 1);
  const double n = static_cast<double>(shape.rows) * norm.ranks->size();
  for (std::int64_t view = 0; view < shape.views; ++view) {
    norm.running_mean.lerp_(mean[view].to(torch::kFloat32), norm.momentum);
    norm.running_var.lerp_((variance[view] * (n / (n - 1))).to(torch::kFloat32), norm.momentum);
  }
  const torch::Tensor inverse = (variance + norm.epsilon).rsqrt();
  const torch::Tensor scale = norm.weight.defined() ? inverse * norm.weight : inverse;
  torch::Tensor shift = -mean * scale;
  if (norm.bias.defined()) shift = shift + norm.bias;
  return torch::stack({mean, inverse, scale, shift}).to(torch::kFloat32);
}

// All coefficients but the first, which is the same on all ranks, are linear in the sums over rows:
// those of all ranks are the mean.
void average_coefficients(torch::autograd::AutogradContext& context, const Gradients& found) {
  auto* ranks = reinterpret_cast<Ranks*>(context.saved_data["ranks"].toInt());
  if (ranks != nullptr) ranks->average({found.coefficients.narrow(0, 1, 2)});
}

// Scale and shift by the running statistics: [2, channels].
torch::Tensor running_scale_and_shift(const BatchNormTensors& norm) {
  torch::Tensor scale = (norm.running_var + norm.epsilon).rsqrt_();
  if (norm.weight.defined()) scale.mul_(norm.weight);
  torch::Tensor shift = -norm.running_mean * scale;
  if (norm.bias.defined()) shift.add_(norm.bias);
  return torch::stack({scale, shift});
}

class BatchNormGpu : public torch::autograd::Function<BatchNormGpu> {
 public:
  // Returns the result twice, see Fork.
  static torch::autograd::variable_list forward(torch::autograd::AutogradContext* context,
                                                const torch::Tensor& x,
                                                const std::optional<torch::Tensor>& weight,
                                                const std::optional<torch::Tensor>& bias,
                                                const std::optional<torch::Tensor>& residual,
                                                const BatchNormTensors& norm, std::int64_t views,
                                                bool relu) {
    const torch::Tensor from = in_memory_order(x);
    const torch::Tensor add = residual ? in_memory_order(*residual) : torch::Tensor();
    const gpu::Shape shape = shape_of(from, views);
    const torch::Tensor all = batch_statistics(norm, from, shape);
    const gpu::Statistics statistics = statistics_in(all);
    const torch::Tensor y = applied(shape, from, add, statistics.scale, statistics.shift, relu);
    // Without a residual the output's sign follows from x, so that y need not be kept for it.
    context->save_for_backward(
        {from, weight.value_or(torch::Tensor()), relu && residual ? y : torch::Tensor(), all});
    context->saved_data["views"] = views;
    context->saved_data["relu"] = relu;
    context->saved_data["residual"] = residual.has_value();
    context->saved_data["affine"] = bias.has_value();
    context->saved_data["ranks"] = reinterpret_cast<std::int64_t>(norm.ranks);
    context->set_materialize_grads(false);
    return {y, y.variable_data()};
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const torch::Tensor& x = saved[0];
    const torch::Tensor& y = saved[2];
    torch::Tensor grad = in_memory_order(gradients[gradients[0].defined() ? 0 : 1]);
    torch::Tensor other;
    if (gradients[0].defined() && gradients[1].defined()) other = in_memory_order(gradients[1]);
    const bool relu = context->saved_data["relu"].toBool();
    const bool has_residual = context->saved_data["residual"].toBool();
    const std::int64_t views = context->saved_data["views"].toInt();
    const gpu::Shape shape = shape_of(x, views);

    const Gradients found(x, shape, context->saved_data["affine"].toBool());
    torch::Tensor x_gradient = torch::empty_like(x);
    const bool masked = has_residual && relu;
    if (other.defined() && !masked) {
      grad = grad + other;
      other.reset();
    }
    // Without a ReLU the residual's gradient is the output's own.
    torch::Tensor residual_gradient;
    if (has_residual) residual_gradient = masked ? torch::empty_like(grad) : grad;
    const gpu::Sums sums = found.sums(masked ? residual_gradient.data_ptr() : nullptr);
    const gpu::Statistics statistics = statistics_in(saved[3]);
    checked(gpu::gradient_sums(shape, grad.const_data_ptr(), data_or_null(other),
                               x.const_data_ptr(), data_or_null(y), relu, shape.rows,
                               floats_or_null(saved[1]), statistics,
                               found.partial.data_ptr<float>(), sums, current_stream()));
    average_coefficients(*context, found);
    // With the masked gradient written down, the second half needs no mask.
    checked(gpu::apply_gradients(shape, masked ? sums.masked : grad.const_data_ptr(),
                                 x.const_data_ptr(), data_or_null(y), relu && !masked, statistics,
                                 sums.coefficients, x_gradient.data_ptr(), current_stream()));
    return {x_gradient, found.gamma, found.beta, residual_gradient, {}, {}, {}};
  }
};

gpu::PoolShape pool_shape_of(const torch::Tensor& x, std::int64_t views) {
  const auto height = static_cast<int>(x.size(2)), width = static_cast<int>(x.size(3));
  return {.views = static_cast<int>(views),
          .pictures = x.size(0) / views,
          .height = height,
          .width = width,
          .pooled_height = (height + 1) / 2,
          .pooled_width = (width + 1) / 2,
          .channels = static_cast<int>(x.size(1))};
}

torch::Tensor pooled_like(const torch::Tensor& x, const gpu::PoolShape& shape,
                          torch::ScalarType type) {
  return torch::empty({x.size(0), x.size(1), shape.pooled_height, shape.pooled_width},
                      x.options().dtype(type).memory_format(torch::MemoryFormat::ChannelsLast));
}

class PooledBatchNormGpu : public torch::autograd::Function<PooledBatchNormGpu> {
 public:
  static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& x,
                               const std::optional<torch::Tensor>& weight,
                               const std::optional<torch::Tensor>& bias,
                               const BatchNormTensors& norm, std::int64_t views) {
    const torch::Tensor from = in_memory_order(x);
    const torch::Tensor all = batch_statistics(norm, from, shape_of(from, views));
    const gpu::Statistics statistics = statistics_in(all);
    const gpu::PoolShape shape = pool_shape_of(from, views);
    torch::Tensor y = pooled_like(from, shape, from.scalar_type());
    torch::Tensor largest = pooled_like(from, shape, from.scalar_type());
    torch::Tensor where = pooled_like(from, shape, torch::kByte);
    checked(gpu::pool(shape, from.const_data_ptr(), statistics.scale, statistics.shift,
                      y.data_ptr(), largest.data_ptr(), where.data_ptr<std::uint8_t>(),
                      current_stream()));
    context->save_for_backward({from, weight.value_or(torch::Tensor()), all, largest, where});
    context->saved_data["views"] = views;
    context->saved_data["affine"] = bias.has_value();
    context->saved_data["ranks"] = reinterpret_cast<std::int64_t>(norm.ranks);
    return y;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const torch::Tensor& x = saved[0];
    const torch::Tensor& largest = saved[3];
    const torch::Tensor grad = in_memory_order(gradients[0]);
    const std::int64_t views = context->saved_data["views"].toInt();
    // Only the pixels that were the largest of a window have a gradient.
    const gpu::Shape shape = shape_of(largest, views);
    const Gradients found(x, shape, context->saved_data["affine"].toBool());
    const gpu::Sums sums = found.sums(/*masked=*/nullptr);
    const gpu::Statistics statistics = statistics_in(saved[2]);
    checked(
        gpu::gradient_sums(shape, grad.const_data_ptr(), nullptr, largest.const_data_ptr(), nullptr,
                           /*relu=*/true, shape_of(x, views).rows, floats_or_null(saved[1]),
                           statistics, found.partial.data_ptr<float>(), sums, current_stream()));
    average_coefficients(*context, found);
    torch::Tensor x_gradient = torch::empty_like(x);
    checked(gpu::pool_gradient(pool_shape_of(x, views), grad.const_data_ptr(),
                               saved[4].const_data_ptr<std::uint8_t>(), x.const_data_ptr(),
                               sums.coefficients, x_gradient.data_ptr(), current_stream()));
    return {x_gradient, found.gamma, found.beta, {}, {}};
  }
};

std::optional<torch::Tensor> if_defined(const torch::Tensor& x) {
  return x.defined() ? std::optional(x) : std::nullopt;
}

}  // namespace

bool fits_batch_norm_gpu(const BatchNormTensors& norm, const torch::Tensor& x) {
  if (!x.is_cuda() || norm.running_mean.scalar_type() != torch::kFloat32) return false;
  if (x.scalar_type() == torch::kFloat32) return x.size(1) % gpu::group_of(Number::float32) == 0;
  return x.scalar_type() == torch::kBFloat16 && x.size(1) % gpu::group_of(Number::bfloat16) == 0;
}

Fork batch_norm_gpu(const BatchNormTensors& norm, const torch::Tensor& x, bool training,
                    std::int64_t views, bool relu, const torch::Tensor& residual) {
  if (training) {
    const auto y = BatchNormGpu::apply(x, if_defined(norm.weight), if_defined(norm.bias),
                                       if_defined(residual), norm, views, relu);
    return {y[0], y[1]};
  }
  const torch::Tensor from = in_memory_order(x);
  const torch::Tensor running = running_scale_and_shift(norm);
  const float* scale = running.const_data_ptr<float>();
  const torch::Tensor y =
      applied(shape_of(from, 1), from, residual.defined() ? in_memory_order(residual) : residual,
              scale, scale + running.stride(0), relu);
  return {y, y};
}

torch::Tensor batch_norm_relu_pool_gpu(const BatchNormTensors& norm, const torch::Tensor& x,
                                       bool training, std::int64_t views) {
  if (training) {
    return PooledBatchNormGpu::apply(x, if_defined(norm.weight), if_defined(norm.bias), norm,
                                     views);
  }
  const torch::Tensor from = in_memory_order(x);
  const gpu::PoolShape shape = pool_shape_of(from, 1);
  const torch::Tensor running = running_scale_and_shift(norm);
  const float* scale = running.const_data_ptr<float>();
  torch::Tensor y = pooled_like(from, shape, from.scalar_type());
  checked(gpu::pool(shape, from.const_data_ptr(), scale, scale + running.stride(0), y.data_ptr(),
                    nullptr, nullptr, current_stream()));
  return y;
}

}  // namespace riffle
