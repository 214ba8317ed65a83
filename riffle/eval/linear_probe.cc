#include "riffle/eval/linear_probe.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <vector>

#include <torch/types.h>
#include <torch/utils.h>

#include "riffle/base/error.h"
#include "riffle/base/log.h"
#include "riffle/base/random.h"
#include "riffle/base/text.h"
#include "riffle/eval/embedding.h"
#include "riffle/eval/lars.h"
#include "riffle/eval/softmax_regression.h"
#include "riffle/tensors/unit_length.h"

namespace riffle {
namespace {

constexpr std::int64_t kBlockRows = 8192;
// A LARS step changes weights by lr x trust of their length, ten times that with momentum. From the
// first weights to those that unit-length features need is a factor of about a hundred, and the
// cosine halves the mean rate: steps x lr x trust below ln(100) / 5 cannot get there.
constexpr double kLeastGrowth = 1.0;

std::vector<LinearRecipe> recipes() {
  LinearRecipe imagenet;
  imagenet.name = "imagenet";
  LinearRecipe inaturalist = imagenet;
  inaturalist.name = "inaturalist";
  inaturalist.epochs = 20;
  inaturalist.lr = 12.0;
  LinearRecipe full = imagenet;
  full.name = "full-imagenet";
  full.epochs = 30;
  LinearRecipe cached = imagenet;
  cached.name = "cached";
  cached.method = LinearMethod::ridge;
  cached.random_crops = false;
  LinearRecipe softmax = cached;
  softmax.name = "softmax";
  softmax.method = LinearMethod::softmax;
  return {imagenet, inaturalist, full, cached, softmax};
}

std::vector<std::string> names_of(const std::vector<LinearRecipe>& all) {
  std::vector<std::string> names;
  for (const auto& recipe : all) names.push_back(recipe.name);
  return names;
}

at::Tensor shuffled(std::int64_t count, std::uint64_t seed, std::int64_t epoch) {
  at::Tensor order = torch::arange(count);
  auto* places = order.data_ptr<std::int64_t>();
  Random random(seed, Purpose("probe/order"), static_cast<std::uint64_t>(epoch));
  for (std::int64_t i = count - 1; i > 0; --i) {
    std::swap(places[i], places[random.below(static_cast<std::uint64_t>(i) + 1)]);
  }
  return order;
}

at::Tensor first_weights(std::int64_t classes, std::int64_t dim, const LinearRecipe& recipe) {
  at::Tensor weight = torch::empty({classes, dim}, torch::kFloat64);
  Random random(recipe.seed, Purpose("probe/weights"), 0);
  for (std::int64_t i = 0; i < weight.numel(); ++i) {
    weight.data_ptr<double>()[i] = recipe.initial_std * static_cast<double>(random.normal());
  }
  return weight;
}

LinearClassifier fit_lars(const EpochFeatures& features, const at::Tensor& classes,
                          std::int64_t class_count, const LinearRecipe& recipe) {
  LinearClassifier classifier;
  std::optional<Lars> optimizer;
  const std::int64_t count = classes.size(0);
  const std::int64_t batch = std::min(recipe.batch, count);
  const std::int64_t steps_per_epoch = (count + batch - 1) / batch;
  const auto steps = static_cast<double>(steps_per_epoch * recipe.epochs);
  if (recipe.lr * recipe.trust * steps < kLeastGrowth) {
    log_warning(cat("probe recipe '", recipe.name, "' makes only ", steps, " steps on ", count,
                    " training pictures: LARS will not get far from its first weights; ",
                    "the recipe 'cached' suits small sets"));
  }
  std::int64_t step = 0;
  for (std::int64_t epoch = 0; epoch < recipe.epochs; ++epoch) {
    const at::Tensor rows = features(epoch);
    if (!optimizer) {
      classifier.weight = first_weights(class_count, rows.size(1), recipe).to(rows.device());
      classifier.bias = torch::zeros({class_count}, classifier.weight.options());
      optimizer.emplace(NamedTensors{{"weight", classifier.weight}, {"bias", classifier.bias}},
                        LarsOptions{.trust = recipe.trust, .momentum = recipe.momentum});
    }
    const at::Tensor labels = classes.to(rows.device());
    const at::Tensor order = shuffled(count, recipe.seed, epoch).to(rows.device());
    for (std::int64_t begin = 0; begin < count; begin += batch, ++step) {
      const at::Tensor places = order.narrow(0, begin, std::min(batch, count - begin));
      const at::Tensor inputs = unit_length(rows.index_select(0, places)).to(torch::kFloat64);
      const at::Tensor targets = labels.index_select(0, places);
      // The gradient of the mean cross-entropy by the scores: probabilities, less one at the true
      // class.
      at::Tensor slope = classifier.scores(inputs).softmax(1);
      slope.scatter_add_(1, targets.unsqueeze(1),
                         torch::full({targets.size(0), 1}, -1.0, slope.options()));
      slope.div_(static_cast<double>(targets.size(0)));
      classifier.weight.mutable_grad() = slope.t().mm(inputs);
      classifier.bias.mutable_grad() = slope.sum(0);
      const double progress = static_cast<double>(step) / steps;
      optimizer->step(recipe.lr * 0.5 * (1 + std::cos(std::numbers::pi * progress)));
    }
  }
  optimizer->zero_grad();
  return classifier;
}

// Solves for standardised features, then folds mean and scale into weight and bias.
LinearClassifier fit_ridge(const at::Tensor& features, const at::Tensor& classes,
                           std::int64_t class_count, const LinearRecipe& recipe) {
  const at::Tensor rows = unit_length(features);
  const at::Tensor labels = classes.to(rows.device());
  const std::int64_t count = rows.size(0);
  const std::int64_t dim = rows.size(1);
  const auto n = static_cast<double>(count);
  const auto options = rows.options().dtype(torch::kFloat64);

  const auto for_each_block = [&](const auto& use) {
    for (std::int64_t begin = 0; begin < count; begin += kBlockRows) {
      const std::int64_t size = std::min(kBlockRows, count - begin);
      use(rows.narrow(0, begin, size).to(torch::kFloat64), labels.narrow(0, begin, size));
    }
  };
  const at::Tensor mean = torch::zeros({dim}, options);
  for_each_block([&](const at::Tensor& block, const at::Tensor&) { mean.add_(block.sum(0)); });
  mean.div_(n);
  const at::Tensor covariance = torch::zeros({dim, dim}, options);
  const at::Tensor by_class = torch::zeros({class_count, dim}, options);
  for_each_block([&](const at::Tensor& block, const at::Tensor& block_labels) {
    const at::Tensor centred = block - mean;
    const at::Tensor targets = torch::one_hot(block_labels, class_count).to(torch::kFloat64);
    covariance.addmm_(centred.t(), centred);
    by_class.addmm_(targets.t(), centred);
  });
  covariance.div_(n);
  by_class.div_(n);

  const at::Tensor scale = covariance.diagonal().sqrt().clamp_min(kLeastStd).reciprocal();
  const at::Tensor system = covariance * scale.unsqueeze(0) * scale.unsqueeze(1) +
                            recipe.penalty * torch::eye(dim, options);
  const at::Tensor factor = torch::linalg_cholesky(system);
  const at::Tensor solved = torch::cholesky_solve((by_class * scale).t(), factor).t();
  LinearClassifier classifier;
  classifier.weight = solved * scale;
  classifier.bias =
      labels.bincount({}, class_count).to(torch::kFloat64) / n - classifier.weight.mv(mean);
  return classifier;
}

}  // namespace

std::string LinearRecipe::text(std::int64_t train_count) const {
  const std::string features =
      "frozen encoder in evaluation mode, average-pooled features of unit length";
  if (method == LinearMethod::ridge) {
    return cat(name, ": ", features,
               ", standardised; ridge regression on one-hot classes, penalty ", penalty, "; ",
               train_count, " training pictures without augmentation");
  }
  if (method == LinearMethod::softmax) {
    std::vector<std::string> tried;
    for (const double value : penalties) tried.push_back(cat(value));
    return cat(name, ": ", features, ", standardised; softmax regression, penalty the best of ",
               join(tried, ", "), " on a fifth of the training pictures; ", train_count,
               " training pictures without augmentation");
  }
  return cat(name, ": ", features, "; softmax regression by SGD with LARS (trust ", trust,
             ", no clipping), momentum ", momentum, ", no weight decay, lr ", lr,
             " with cosine decay, batch ", std::min(batch, train_count), ", ", epochs,
             " epochs of ", train_count, " training pictures ",
             random_crops ? "with random crop and flip" : "without augmentation", ", seed ", seed);
}

LinearRecipe linear_recipe(const std::string& name) {
  const auto all = recipes();
  for (const auto& recipe : all) {
    if (recipe.name == name) return recipe;
  }
  throw Error(unknown_name("probe recipe", name, names_of(all)));
}

std::string recipe_names() { return join(names_of(recipes()), ", "); }

at::Tensor LinearClassifier::scores(const at::Tensor& features) const {
  return torch::addmm(bias, features.to(torch::kFloat64), weight.t());
}

LinearClassifier fit_linear(const EpochFeatures& features, const at::Tensor& classes,
                            std::int64_t class_count, const LinearRecipe& recipe) {
  const torch::NoGradGuard no_gradient;
  if (recipe.method == LinearMethod::ridge) {
    return fit_ridge(features(0), classes, class_count, recipe);
  }
  if (recipe.method == LinearMethod::softmax) {
    auto fitted =
        softmax_regression(unit_length(features(0)), classes, class_count, recipe.penalties);
    return {fitted.weight, fitted.bias};
  }
  if (recipe.epochs < 1 || recipe.batch < 1) {
    throw Error(
        cat("probe recipe '", recipe.name, "' needs at least one epoch and a batch of one"));
  }
  return fit_lars(features, classes, class_count, recipe);
}

at::Tensor top_hits(const at::Tensor& scores, const at::Tensor& classes) {
  const at::Tensor labels = classes.to(scores.device()).unsqueeze(1);
  const std::int64_t five = std::min<std::int64_t>(5, scores.size(1));
  const at::Tensor hits = std::get<1>(scores.topk(five, 1)) == labels;
  return torch::stack({hits.select(1, 0), hits.any(1)}, 1);
}

TopAccuracy top_accuracy(const at::Tensor& scores, const at::Tensor& classes) {
  const at::Tensor shares = top_hits(scores, classes).to(torch::kFloat64).mean(0).cpu();
  return {.top1 = 100 * shares[0].item<double>(), .top5 = 100 * shares[1].item<double>()};
}

}  // namespace riffle
