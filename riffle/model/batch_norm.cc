#include "riffle/model/batch_norm.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include <torch/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/model/batch_norm_kernel.h"
#if RIFFLE_CUDA
#include "riffle/model/batch_norm_gpu.h"
#endif

namespace riffle {
namespace {

// A batch in memory: views * rows rows of channels.
struct Extent {
  std::int64_t views;
  std::int64_t rows;  // per view
  std::int64_t channels;

  static Extent of(const torch::Tensor& x, std::int64_t views) {
    return {views, x.numel() / x.size(1) / views, x.size(1)};
  }
};

// Work is cut into chunks of rows that never span two views. The cut depends on the extent alone,
// not on the threads, so that sums are always added up in the same order.
class Chunks {
 public:
  explicit Chunks(Extent extent)
      : extent_(extent),
        rows_(std::clamp<std::int64_t>(kElements / extent.channels, 8, 1024)),
        per_view_((extent.rows + rows_ - 1) / rows_) {}

  std::int64_t per_view() const { return per_view_; }
  std::int64_t count() const { return per_view_ * extent_.views; }

  // work(chunk, view, offset of its first element, rows)
  template <typename Work>
  void for_each(const Work& work) const {
    const std::int64_t grain = 1 + kWorthAThread / (rows_ * extent_.channels);
    at::parallel_for(0, count(), grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t chunk = begin; chunk < end; ++chunk) {
        const std::int64_t view = chunk / per_view_;
        const std::int64_t first = chunk % per_view_ * rows_;
        const std::int64_t rows = std::min(rows_, extent_.rows - first);
        work(chunk, view, (view * extent_.rows + first) * extent_.channels, rows);
      }
    });
  }

 private:
  static constexpr std::int64_t kElements = 16384;
  static constexpr std::int64_t kWorthAThread = 32768;

  Extent extent_;
  std::int64_t rows_;
  std::int64_t per_view_;
};

// Per chunk two sums per channel, put together in the order of the chunks.
class Sums {
 public:
  Sums(const Chunks& chunks, std::int64_t channels)
      : chunks_(chunks), channels_(channels), values_(chunks.count() * 2 * channels) {}

  float* first(std::int64_t chunk) { return values_.data() + chunk * 2 * channels_; }
  float* second(std::int64_t chunk) { return first(chunk) + channels_; }

  void total(std::int64_t view, std::vector<double>& first_sum, std::vector<double>& second_sum) {
    first_sum.assign(channels_, 0.0);
    second_sum.assign(channels_, 0.0);
    for (std::int64_t i = 0; i < chunks_.per_view(); ++i) {
      const float* one = first(view * chunks_.per_view() + i);
      const float* two = one + channels_;
      for (std::int64_t c = 0; c < channels_; ++c) first_sum[c] += one[c];
      for (std::int64_t c = 0; c < channels_; ++c) second_sum[c] += two[c];
    }
  }

 private:
  const Chunks& chunks_;
  std::int64_t channels_;
  std::vector<float> values_;
};

torch::Tensor in_memory_order(const torch::Tensor& x) {
  return x.dim() == 4 ? x.contiguous(torch::MemoryFormat::ChannelsLast) : x.contiguous();
}

const float* data_or_null(const torch::Tensor& x) {
  return x.defined() ? x.const_data_ptr<float>() : nullptr;
}

// [views, channels] each.
struct Statistics {
  explicit Statistics(Extent extent)
      : mean(torch::empty({extent.views, extent.channels})), inverse(torch::empty_like(mean)) {}

  torch::Tensor mean;
  torch::Tensor inverse;  // 1 / sqrt(variance + epsilon)
};

// Each view's statistics; the running ones follow them.
Statistics batch_statistics(const BatchNormTensors& norm, const float* x, Extent extent,
                            const Chunks& chunks) {
  const auto [views, rows, channels] = extent;
  Sums sums(chunks, channels);
  // Differences to a view's first row instead of the values themselves keep the variance exact when
  // a channel's mean is far from zero.
  const auto origin = [&](std::int64_t view) { return x + view * rows * channels; };
  chunks.for_each([&](std::int64_t chunk, std::int64_t view, std::int64_t at, std::int64_t count) {
    batch_norm_kernel::add_moments(x + at, count, channels, origin(view), sums.first(chunk),
                                   sums.second(chunk));
  });

  Statistics statistics(extent);
  float* means = statistics.mean.data_ptr<float>();
  float* inverses = statistics.inverse.data_ptr<float>();
  float* running_mean = norm.running_mean.data_ptr<float>();
  float* running_var = norm.running_var.data_ptr<float>();
  double n = static_cast<double>(rows);
  std::vector<double> sum;
  std::vector<double> squares;
  torch::Tensor moments = torch::empty({views, 2, channels}, torch::kFloat64);
  auto moment = moments.accessor<double, 3>();
  for (std::int64_t view = 0; view < views; ++view) {
    sums.total(view, sum, squares);
    for (std::int64_t c = 0; c < channels; ++c) {
      const double offset = sum[c] / n;
      moment[view][0][c] = origin(view)[c] + offset;
      moment[view][1][c] = std::max(0.0, squares[c] / n - offset * offset);
    }
  }
  if (norm.ranks != nullptr) {
    moments.copy_(moments_of_all(moments, *norm.ranks));
    n *= norm.ranks->size();
  }
  for (std::int64_t view = 0; view < views; ++view) {
    for (std::int64_t c = 0; c < channels; ++c) {
      const double mean = moment[view][0][c];
      const double variance = moment[view][1][c];
      means[view * channels + c] = static_cast<float>(mean);
      inverses[view * channels + c] = static_cast<float>(1.0 / std::sqrt(variance + norm.epsilon));
      const auto follow = [&](float& running, double value) {
        running = static_cast<float>((1.0 - norm.momentum) * running + norm.momentum * value);
      };
      follow(running_mean[c], mean);
      follow(running_var[c], variance * n / (n - 1.0));
    }
  }
  return statistics;
}

// y = x * scale + shift for one view.
void scale_and_shift(const BatchNormTensors& norm, const float* mean, const float* inverse,
                     std::int64_t channels, float* scale, float* shift) {
  const float* gamma = data_or_null(norm.weight);
  const float* beta = data_or_null(norm.bias);
  for (std::int64_t c = 0; c < channels; ++c) {
    scale[c] = inverse[c] * (gamma ? gamma[c] : 1.0f);
    shift[c] = (beta ? beta[c] : 0.0f) - mean[c] * scale[c];
  }
}

torch::Tensor normalised(const BatchNormTensors& norm, const Statistics& statistics,
                         const torch::Tensor& x, const torch::Tensor& residual, bool relu,
                         Extent extent, const Chunks& chunks, bool in_place) {
  const std::int64_t channels = extent.channels;
  std::vector<float> scale(extent.views * channels);
  std::vector<float> shift(extent.views * channels);
  for (std::int64_t view = 0; view < extent.views; ++view) {
    const std::int64_t at = view * channels;
    scale_and_shift(norm, statistics.mean.const_data_ptr<float>() + at,
                    statistics.inverse.const_data_ptr<float>() + at, channels, &scale[at],
                    &shift[at]);
  }
  torch::Tensor y = in_place ? x : torch::empty_like(x);
  const float* from = x.const_data_ptr<float>();
  const float* add = data_or_null(residual);
  float* to = y.data_ptr<float>();
  chunks.for_each([&](std::int64_t, std::int64_t view, std::int64_t at, std::int64_t rows) {
    batch_norm_kernel::apply(from + at, add ? add + at : nullptr, rows, channels,
                             &scale[view * channels], &shift[view * channels], relu, to + at);
  });
  return y;
}

// A context keeps values alone.
void save_ranks(torch::autograd::AutogradContext& context, Ranks* ranks) {
  context.saved_data["ranks"] = reinterpret_cast<std::int64_t>(ranks);
}

Ranks* saved_ranks(torch::autograd::AutogradContext& context) {
  return reinterpret_cast<Ranks*>(context.saved_data["ranks"].toInt());
}

class TrainingBatchNorm : public torch::autograd::Function<TrainingBatchNorm> {
 public:
  // The tensors with a gradient are arguments of their own because autograd looks for them there;
  // it refuses undefined ones, so those are empty optionals.
  static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& x,
                               const std::optional<torch::Tensor>& weight,
                               const std::optional<torch::Tensor>& bias,
                               const std::optional<torch::Tensor>& residual,
                               const BatchNormTensors& norm, std::int64_t views, bool relu) {
    const torch::Tensor from = in_memory_order(x);
    const torch::Tensor add = residual ? in_memory_order(*residual) : torch::Tensor();
    const Extent extent = Extent::of(from, views);
    const Chunks chunks(extent);
    const Statistics statistics =
        batch_statistics(norm, from.const_data_ptr<float>(), extent, chunks);
    const torch::Tensor y =
        normalised(norm, statistics, from, add, relu, extent, chunks, /*in_place=*/false);
    context->save_for_backward({from, weight.value_or(torch::Tensor()), relu ? y : torch::Tensor(),
                                statistics.mean, statistics.inverse});
    context->saved_data["views"] = views;
    context->saved_data["residual"] = residual.has_value();
    context->saved_data["affine"] = bias.has_value();
    save_ranks(*context, norm.ranks);
    return y;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const torch::Tensor& x = saved[0];
    const torch::Tensor& y = saved[2];
    const torch::Tensor gy = in_memory_order(gradients[0]);
    const bool affine = context->saved_data["affine"].toBool();
    const bool has_residual = context->saved_data["residual"].toBool();
    const Extent extent = Extent::of(x, context->saved_data["views"].toInt());
    const Chunks chunks(extent);
    const auto [views, rows, channels] = extent;

    const float* mean = saved[3].const_data_ptr<float>();
    const float* inverse = saved[4].const_data_ptr<float>();
    const float* gamma = data_or_null(saved[1]);
    const float* from = x.const_data_ptr<float>();
    const float* out = data_or_null(y);
    const float* grad = gy.const_data_ptr<float>();
    // Without a ReLU the residual's gradient is the output's own.
    torch::Tensor residual_gradient;
    if (has_residual) residual_gradient = y.defined() ? torch::empty_like(gy) : gy;
    float* masked = has_residual && y.defined() ? residual_gradient.data_ptr<float>() : nullptr;

    Sums sums(chunks, channels);
    chunks.for_each([&, c = channels](std::int64_t chunk, std::int64_t view, std::int64_t at,
                                      std::int64_t count) {
      batch_norm_kernel::add_gradients(grad + at, out ? out + at : nullptr, from + at, count, c,
                                       mean + view * c, sums.first(chunk), sums.second(chunk),
                                       masked ? masked + at : nullptr);
    });

    torch::Tensor weight_gradient;
    torch::Tensor bias_gradient;
    if (affine) {
      weight_gradient = torch::zeros({channels});
      bias_gradient = torch::zeros({channels});
    }
    std::vector<float> a(views * channels);
    std::vector<float> b(views * channels);
    std::vector<float> c(views * channels);
    std::vector<double> sum;
    std::vector<double> products;
    torch::Tensor totals = torch::empty({views, 2, channels}, torch::kFloat64);
    for (std::int64_t view = 0; view < views; ++view) {
      sums.total(view, sum, products);
      std::ranges::copy(sum, totals[view][0].data_ptr<double>());
      std::ranges::copy(products, totals[view][1].data_ptr<double>());
    }
    torch::Tensor own_totals = totals;
    double n = static_cast<double>(rows);
    if (Ranks* ranks = saved_ranks(*context)) {
      totals = ranks->sum(own_totals);
      n *= ranks->size();
    }
    const auto total = totals.accessor<double, 3>();
    const auto own = own_totals.accessor<double, 3>();
    for (std::int64_t view = 0; view < views; ++view) {
      for (std::int64_t i = 0; i < channels; ++i) {
        const std::int64_t at = view * channels + i;
        const double scale = static_cast<double>(inverse[at]) * (gamma ? gamma[i] : 1.0f);
        a[at] = static_cast<float>(scale);
        b[at] = static_cast<float>(-scale * inverse[at] * inverse[at] * total[view][1][i] / n);
        c[at] = static_cast<float>(-scale * total[view][0][i] / n);
        if (affine) {
          weight_gradient.data_ptr<float>()[i] += static_cast<float>(own[view][1][i] * inverse[at]);
          bias_gradient.data_ptr<float>()[i] += static_cast<float>(own[view][0][i]);
        }
      }
    }

    torch::Tensor gx = torch::empty_like(x);
    float* to = gx.data_ptr<float>();
    if (masked) {
      grad = masked;
      out = nullptr;
    }
    chunks.for_each(
        [&, n = channels](std::int64_t, std::int64_t view, std::int64_t at, std::int64_t count) {
          batch_norm_kernel::apply_gradient(grad + at, out ? out + at : nullptr, from + at, count,
                                            n, mean + view * n, &a[view * n], &b[view * n],
                                            &c[view * n], to + at);
        });
    return {gx, weight_gradient, bias_gradient, residual_gradient, {}, {}, {}};
  }
};

// The normalisation alone, over all ranks, on any device and for any type.
class SharedNormalisation : public torch::autograd::Function<SharedNormalisation> {
 public:
  static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& x,
                               const BatchNormTensors& norm, std::int64_t views) {
    const torch::Tensor rows = rows_of(x, views);
    const torch::Tensor own = torch::stack({rows.mean(1), rows.var(1, /*unbiased=*/false)}, 1);
    const torch::Tensor moments = moments_of_all(own.to(torch::kFloat64), *norm.ranks);
    const double n = static_cast<double>(rows.size(1)) * norm.ranks->size();
    for (std::int64_t view = 0; view < views; ++view) {
      norm.running_mean.lerp_(moments[view][0].to(norm.running_mean.scalar_type()), norm.momentum);
      norm.running_var.lerp_((moments[view][1] * (n / (n - 1))).to(norm.running_var.scalar_type()),
                             norm.momentum);
    }
    const torch::Tensor mean = moments.select(1, 0).unsqueeze(1).to(rows.scalar_type());
    const torch::Tensor inverse =
        (moments.select(1, 1) + norm.epsilon).rsqrt().unsqueeze(1).to(rows.scalar_type());
    const torch::Tensor y = (rows - mean) * inverse;
    context->save_for_backward({y, inverse});
    context->saved_data["views"] = views;
    save_ranks(*context, norm.ranks);
    return like(y, x);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const torch::Tensor &y = saved[0], &inverse = saved[1];
    Ranks& ranks = *saved_ranks(*context);
    const torch::Tensor gy = rows_of(gradients[0], context->saved_data["views"].toInt());
    const torch::Tensor totals = ranks.sum(torch::stack({gy.sum(1), (gy * y).sum(1)}));
    const double n = static_cast<double>(gy.size(1)) * ranks.size();
    const torch::Tensor gx =
        (gy - totals[0].unsqueeze(1) / n - y * (totals[1].unsqueeze(1) / n)) * inverse;
    return {like(gx, gradients[0]), {}, {}};
  }

 private:
  // [views, rows, channels], of a type that sums may be made in.
  static torch::Tensor rows_of(const torch::Tensor& x, std::int64_t views) {
    const torch::Tensor wide = x.scalar_type() == torch::kFloat64 ? x : x.to(torch::kFloat32);
    const torch::Tensor last = x.dim() == 4 ? wide.permute({0, 2, 3, 1}) : wide;
    return last.reshape({views, -1, x.size(1)});
  }
  static torch::Tensor like(const torch::Tensor& rows, const torch::Tensor& x) {
    if (x.dim() != 4) return rows.reshape(x.sizes()).to(x.scalar_type());
    return rows.reshape({x.size(0), x.size(2), x.size(3), x.size(1)})
        .permute({0, 3, 1, 2})
        .to(x.scalar_type());
  }
};

torch::Tensor shared_batch_norm(const BatchNormTensors& norm, const torch::Tensor& x,
                                std::int64_t views, bool relu, const torch::Tensor& residual) {
  torch::Tensor y = SharedNormalisation::apply(x, norm, views);
  const auto channels = [&](const torch::Tensor& values) {
    const torch::Tensor typed = values.to(x.scalar_type());
    return x.dim() == 4 ? typed.view({-1, 1, 1}) : typed;
  };
  if (norm.weight.defined()) y = y * channels(norm.weight) + channels(norm.bias);
  if (residual.defined()) y = y + residual;
  return relu ? y.relu() : y;
}

std::optional<torch::Tensor> if_defined(const torch::Tensor& x) {
  return x.defined() ? std::optional(x) : std::nullopt;
}

torch::Tensor with_running_statistics(const BatchNormTensors& norm, const torch::Tensor& x,
                                      bool relu, const torch::Tensor& residual) {
  const torch::Tensor from = in_memory_order(x);
  const torch::Tensor add = residual.defined() ? in_memory_order(residual) : residual;
  const Extent extent = Extent::of(from, 1);
  Statistics statistics(extent);
  statistics.mean.copy_(norm.running_mean);
  const float* variance = norm.running_var.const_data_ptr<float>();
  float* inverse = statistics.inverse.data_ptr<float>();
  for (std::int64_t c = 0; c < extent.channels; ++c) {
    inverse[c] = static_cast<float>(1.0 / std::sqrt(variance[c] + norm.epsilon));
  }
  return normalised(norm, statistics, from, add, relu, extent, Chunks(extent), /*in_place=*/true);
}

}  // namespace

torch::Tensor moments_of_all(const torch::Tensor& own, Ranks& ranks) {
  const torch::Tensor all = ranks.gather(own.unsqueeze(0));
  const torch::Tensor means = all.select(-2, 0), variances = all.select(-2, 1);
  const torch::Tensor mean = means.mean(0);
  return torch::stack({mean, (variances + (means - mean).square()).mean(0)}, -2);
}

torch::Tensor batch_norm(const BatchNormTensors& norm, const torch::Tensor& x, bool training,
                         std::int64_t views, bool relu, const torch::Tensor& residual) {
  return batch_norm_forked(norm, x, training, views, relu, residual).first;
}

Fork batch_norm_forked(const BatchNormTensors& norm, const torch::Tensor& x, bool training,
                       std::int64_t views, bool relu, const torch::Tensor& residual) {
  const auto both = [](const torch::Tensor& y) { return Fork{y, y}; };
  const int ranks = norm.ranks != nullptr ? norm.ranks->size() : 1;
  if (training && ranks * x.numel() / x.size(1) < 2 * views) {
    throw Error("a training batch needs at least 2 pictures for batch statistics");
  }
  const bool fused = x.device().is_cpu() && x.scalar_type() == torch::kFloat32 &&
                     norm.running_mean.scalar_type() == torch::kFloat32;
  if (fused && training) {
    return both(TrainingBatchNorm::apply(x, if_defined(norm.weight), if_defined(norm.bias),
                                         if_defined(residual), norm, views, relu));
  }
  if (fused && !torch::GradMode::is_enabled()) {
    return both(with_running_statistics(norm, x, relu, residual));
  }
#if RIFFLE_CUDA
  if (fits_batch_norm_gpu(norm, x) && (training || !torch::GradMode::is_enabled())) {
    return batch_norm_gpu(norm, x, training, views, relu, residual);
  }
#endif
  if (training && norm.ranks != nullptr) {
    return both(shared_batch_norm(norm, x, views, relu, residual));
  }
  return both(batch_norm_composed(norm, x, training, views, relu, residual));
}

torch::Tensor batch_norm_relu_pool(const BatchNormTensors& norm, const torch::Tensor& x,
                                   bool training, std::int64_t views) {
#if RIFFLE_CUDA
  if (x.scalar_type() == torch::kBFloat16 && fits_batch_norm_gpu(norm, x) &&
      (training || !torch::GradMode::is_enabled())) {
    return batch_norm_relu_pool_gpu(norm, x, training, views);
  }
#endif
  const torch::Tensor maps = batch_norm(norm, x, training, views, /*relu=*/true, {});
  return at::max_pool2d(maps, /*kernel_size=*/3, /*stride=*/2, /*padding=*/1);
}

torch::Tensor batch_norm_composed(const BatchNormTensors& norm, const torch::Tensor& x,
                                  bool training, std::int64_t views, bool relu,
                                  const torch::Tensor& residual) {
  const auto one = [&](const torch::Tensor& view) {
    return at::batch_norm(view, norm.weight, norm.bias, norm.running_mean, norm.running_var,
                          training, norm.momentum, norm.epsilon, /*cudnn_enabled=*/true);
  };
  torch::Tensor y;
  if (training && views > 1) {
    std::vector<torch::Tensor> parts;
    for (const torch::Tensor& view : x.chunk(views)) parts.push_back(one(view));
    y = torch::cat(parts);
  } else {
    y = one(x);
  }
  if (residual.defined()) y.add_(residual);
  if (relu) y.relu_();
  return y;
}

}  // namespace riffle
