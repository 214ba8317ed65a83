// How good a representation is, in percent: a linear and a k-NN probe of a frozen encoder on
// labelled pictures. Works on any Encoder, an untrained one too.
#pragma once

#include <string>

#include "riffle/eval/class_labels.h"
#include "riffle/eval/embedding.h"
#include "riffle/eval/knn.h"
#include "riffle/eval/labelled_set.h"
#include "riffle/eval/linear_probe.h"

namespace riffle {

struct ProbeResult {
  double linear_top1 = 0;
  double linear_top5 = 0;
  double knn_top1 = 0;
  // One standard error of linear_top1 from the finite number of validation pictures.
  double standard_error = 0;
  // In words with every figure; belongs beside the accuracies wherever they are shown.
  std::string recipe;
  // [n, 3] bool, on the CPU: which validation pictures linear top-1, linear top-5 and k-NN got
  // right, for accuracies on some of them.
  at::Tensor hits;
};

// Returns the accuracies, a function of weights, pictures and recipe: neither thread count nor
// batch size shows. Leaves the model as it was. Throws Error if a validation label is missing from
// training. On the CPU, safe to call from several threads with a model each.
// Memory does not grow with the number of pictures, but for their features: those of the training
// set twice where the recipe has random crops.
ProbeResult probe(Encoder& encoder, LabelledSet& train, LabelledSet& val,
                  const LinearRecipe& recipe, const KnnOptions& knn = {});
ProbeResult probe(Encoder& encoder, const LabelledPictures& train, const LabelledPictures& val,
                  const LinearRecipe& recipe, const KnnOptions& knn = {});

// Returns the same from features computed before. Throws Error for a recipe with random crops,
// which are not possible then.
ProbeResult probe(const LabelledFeatures& train, const LabelledFeatures& val,
                  const LinearRecipe& recipe, const KnnOptions& knn = {});

}  // namespace riffle
