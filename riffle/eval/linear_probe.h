// The linear probe: how well a linear classifier on frozen features tells the classes apart.
//
// Three ways to train it. LARS is the paper's: stochastic gradient descent with layer-wise rates on
// random crops, different ones each epoch. The others take features computed once, have no rate to
// tune and the same result on every run: ridge regression on one-hot classes is solved in closed
// form, softmax regression (softmax_regression.h) takes longer and tells many classes apart better.
// Arithmetic is in double precision, so that neither the number of threads nor the device shows in
// an accuracy.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace riffle {

enum class LinearMethod { lars, ridge, softmax };

struct LinearRecipe {
  std::string name;
  LinearMethod method = LinearMethod::lars;
  // For lars.
  std::int64_t epochs = 10;
  // At the start; decays along half a cosine, step by step, to zero.
  double lr = 3.0;
  // The whole training set if that is smaller.
  std::int64_t batch = 1024;
  double momentum = 0.9;
  double trust = 0.001;
  // Of the normal distribution of the first weights; biases begin at 0.
  double initial_std = 0.01;
  // Train on random crops and flips, new ones each epoch.
  bool random_crops = true;
  // For ridge: weight of the squared length of the weights, added to the mean squared error.
  double penalty = 0.01;
  // For softmax: the same, added to the mean cross-entropy; the best of these is taken.
  std::vector<double> penalties = {1e-4, 1e-3, 1e-2};
  // Of first weights, order and crops.
  std::uint64_t seed = 0;

  // Returns the recipe in words with every figure, for one training set.
  std::string text(std::int64_t train_count) const;
};

// Returns "imagenet" (10 epochs, lr 3), "inaturalist" (20, lr 12), "full-imagenet" (30, lr 3), each
// by LARS on random crops as in the paper, or on features computed once "cached" (ridge) or
// "softmax". Throws Error for any other name, naming the nearest.
LinearRecipe linear_recipe(const std::string& name);
// Returns "imagenet, inaturalist, full-imagenet, cached, softmax".
std::string recipe_names();

struct LinearClassifier {
  at::Tensor weight;  // [classes, d] double
  at::Tensor bias;    // [classes]

  // Returns [n, classes]. Requires features of the scale it was fitted to.
  at::Tensor scores(const at::Tensor& features) const;
};

// Returns the training features of an epoch, [n, d]: row i is always of picture i, whatever the
// crop.
using EpochFeatures = std::function<at::Tensor(std::int64_t epoch)>;

// Fits a classifier to features scaled to unit length. `classes`: [n] int64. Ridge and softmax ask
// for epoch 0 alone.
LinearClassifier fit_linear(const EpochFeatures& features, const at::Tensor& classes,
                            std::int64_t class_count, const LinearRecipe& recipe);

struct TopAccuracy {
  double top1 = 0;  // percent
  double top5 = 0;
};

// Returns [n, 2] bool: whether a row's class has the highest score, and one of the five highest.
at::Tensor top_hits(const at::Tensor& scores, const at::Tensor& classes);

// Returns the shares of rows whose class has the highest score, and one of the five highest. With
// fewer than five classes, top-5 is 100.
TopAccuracy top_accuracy(const at::Tensor& scores, const at::Tensor& classes);

}  // namespace riffle
