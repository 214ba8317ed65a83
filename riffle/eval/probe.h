// How good a representation is, in percent: a linear and a k-NN probe of a frozen encoder on
// labelled pictures. Works on any Objective, the untrained one too.
#pragma once

#include <string>

#include "riffle/eval/class_labels.h"
#include "riffle/eval/embedding.h"
#include "riffle/eval/knn.h"
#include "riffle/eval/linear_probe.h"

namespace riffle {

struct ProbeResult {
  double linear_top1 = 0;
  double linear_top5 = 0;
  double knn_top1 = 0;
  // One standard error of linear_top1 from the finite number of validation pictures.
  double standard_error = 0;
  std::string
      recipe;  // in words with every figure; belongs beside the accuracies wherever they are shown
  // [n, 3] bool, on the CPU: which validation pictures linear top-1, linear top-5 and k-NN got
  // right, for accuracies on some of them.
  at::Tensor hits;
};

// Leaves the model as it was. A function of weights, pictures and recipe: neither thread count nor
// batch size shows. Throws Error when a validation label is missing from training. Safe to call
// from several threads with models of their own on the CPU.
ProbeResult probe(Objective& objective, const LabelledPictures& train, const LabelledPictures& val,
                  const LinearRecipe& recipe, const KnnOptions& knn = {});

// The same on features made before. Random crops cannot be had any more: a recipe with them throws
// Error.
ProbeResult probe(const LabelledFeatures& train, const LabelledFeatures& val,
                  const LinearRecipe& recipe, const KnnOptions& knn = {});

}  // namespace riffle
