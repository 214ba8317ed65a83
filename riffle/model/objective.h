// What is learned from two views. A self-supervised method is one file: an Objective that owns its
// encoder, registered as the module "encoder" (a ResNet), and its heads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "riffle/model/model_config.h"

namespace riffle {

struct ObjectiveOutput {
  torch::Tensor loss;      // scalar, to call backward() on
  torch::Tensor features;  // [batch, feature_dim], unit length, detached: what the buffer tracks
  torch::Tensor
      std;  // scalar: mean over channels of the std of unit-length projections, times sqrt(dim).
            // About 1 when features spread over the sphere, 0 when they collapsed
};

class Objective : public torch::nn::Module {
 public:
  // Views are [n, channels, height, width]. Their type is the one computed in; loss and features
  // are float32 all the same.

  // Training mode. `views`: two of each sample, the first ones of all samples, then the second
  // ones, each half with batch-norm statistics of its own.
  virtual ObjectiveOutput forward(const torch::Tensor& views) = 0;

  // Features to track of samples that just arrived, from the pictures as they are: evaluation mode
  // (running statistics, as a batch of one clip must not normalise itself), no gradient. [n,
  // feature_dim]
  virtual torch::Tensor features(const torch::Tensor& views) = 0;

  // For networks that grow: called before each forward(), with the number of updates made so far.
  // True when the network that trains is another one from here on: parameters that slept require a
  // gradient now. Where they lie, and what features() and encode() give, does not change.
  virtual bool grow_to(std::int64_t /*update*/) { return false; }

  // What probes and users want: pooled encoder output in evaluation mode, no gradient. [batch,
  // encoder_dim]
  virtual torch::Tensor encode(const torch::Tensor& pictures) = 0;

  virtual std::int64_t feature_dim() const = 0;
  virtual std::int64_t encoder_dim() const = 0;

  // Parameters whose learning rate may be held constant (SimSiam's predictor). The rest follow the
  // schedule.
  virtual std::vector<torch::Tensor> predictor_parameters() = 0;
};

// The names that model.objective takes.
std::vector<std::string> objective_names();

// The objective that config.objective names, initialised from `seed` alone, but for the encoder
// where config.init names a file. Throws Error when that cannot be used, and for a name that is
// none.
std::shared_ptr<Objective> make_objective(const ModelConfig& config, std::uint64_t seed);

}  // namespace riffle
