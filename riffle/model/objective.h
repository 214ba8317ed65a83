// What is learned from two views. A self-supervised method is one file: an Objective that says what
// the loss of a batch is, and adds the heads that only it has.
//
// All methods share the encoder (a Backbone, the module "encoder"), the projector (an Mlp, the
// module "projector"), whose outputs are called embeddings, and what training needs around them:
// weights cast to the type computed in, a network that grows, batch norms that count their batches,
// features for the buffer and the collapse gauge.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "riffle/dist/ranks.h"
#include "riffle/model/encoder.h"
#include "riffle/model/model_config.h"

namespace riffle {

class Alignment;
class Backbone;
class Mlp;
class MovingAverage;
struct Pass;

struct ObjectiveOutput {
  // Scalar, to call backward() on.
  torch::Tensor loss;
  // [batch, feature_dim], unit length, detached: what the buffer tracks.
  torch::Tensor features;
  // Collapse gauge, a scalar: mean over channels of the standard deviation of unit-length
  // embeddings, times sqrt(feature_dim). About 1 when they spread over the sphere, 0 when all are
  // the same.
  torch::Tensor std;
};

// How many numbers the gradients that ranks on GPUs (riffle/dist/ranks_gpu.h) exchange together
// have: enough to use the connection well, few enough that the first exchange begins early.
constexpr std::int64_t kGradientsTogether = 1 << 22;

// Views are [n, channels, height, width]. Their type is the one computed in; losses, embeddings and
// features are float32 all the same. forward() and advance_to() are for one thread; features() and
// encode() leave the module as it is and may be called from other threads while nothing trains.
class Objective : public Encoder {
 public:
  // Training mode. `views`: two of each sample, the first ones of all samples, then the second
  // ones, each half with batch-norm statistics of its own.
  // `fresh`: how many samples, the first ones, come straight from the stream; alignment leaves them
  // out.
  ObjectiveOutput forward(const torch::Tensor& views, std::int64_t fresh = 0);

  // To be called after each step of the optimiser: moves what follows the parameters.
  void after_step();

  // Returns features to track of samples that just arrived, [n, feature_dim], from the pictures as
  // they are: evaluation mode (running statistics, as a batch of one clip must not normalise
  // itself), no gradient.
  torch::Tensor features(const torch::Tensor& views);

  // Returns what probes and users want, [n, encoder_dim]: pooled encoder output in evaluation mode,
  // no gradient; of the encoder's moving average, if model.average keeps one.
  torch::Tensor encode(const torch::Tensor& pictures) override;

  // Lets this learn as one of several ranks, each with its part of a batch: forward() is then made
  // by all at once, its loss is this rank's share of the mean over ranks, and batch norm and the
  // collapse gauge see the whole batch. `ranks` must outlive this.
  void share(Ranks& ranks) { ranks_ = &ranks; }
  // Returns whether batch-norm statistics are those of all ranks.
  bool has_shared_statistics() const { return sync_batch_norm_; }

  // To be called before each forward(), with the number of updates made so far. Moves the average
  // (model.average) and lets the network grow (model.grow_every). Returns true when the network
  // that trains is another one from here on: parameters that slept require a gradient now. Where
  // they lie, and what features() returns, does not change.
  bool advance_to(std::int64_t update);

  // Updates from one move of the average to the next.
  static constexpr std::int64_t kAverageEvery = 16;

  std::int64_t feature_dim() const { return feature_dim_; }
  std::int64_t encoder_dim() const override;

  // Parameters whose learning rate may be held constant (SimSiam's predictor). The others follow
  // the schedule.
  virtual std::vector<torch::Tensor> predictor_parameters() { return {}; }

 protected:
  // Throws Error for a configuration that cannot work.
  Objective(const ModelConfig& config, std::uint64_t seed);

  // One training pass of both views of n samples.
  struct Batch {
    const torch::Tensor& views;        // [2 n, channels, height, width]
    const torch::Tensor& projections;  // [2 n, feature_dim], float32, before the projector's norm
    const torch::Tensor& embeddings;   // the same after it
    const torch::Tensor& targets;      // embeddings at unit length, without gradient
    const Pass& pass;                  // how they passed; a method's own heads follow it
  };
  // Returns the loss of a batch, a float32 scalar. Weights are cast meanwhile. On a GPU this is
  // recorded once and replayed: it must not read a value back, choose by one, or draw on the host.
  virtual torch::Tensor loss(const Batch& batch) = 0;

  // Returns the rows of all ranks, [2 n, dim] as in Batch: first the first views of all samples,
  // then the second ones. What is not a mean over samples (a loss that compares samples with one
  // another, or a statistic of the batch) must be made from these, or else it is of a rank's part
  // alone. Gradients flow back to the rows of this rank.
  torch::Tensor of_all_ranks(const torch::Tensor& rows) const;

  // Called after each step of the optimiser, for what follows the parameters without a gradient,
  // such as a MovingAverage. Such a copy is a registered module whose parameters do not require a
  // gradient. Recorded on a GPU as loss() is.
  virtual void follow() {}

  // Returns a copy of encoder and projector that a method registers and moves in follow().
  std::shared_ptr<MovingAverage> make_moving_average(const ModelConfig& config) const;

 private:
  std::vector<torch::Tensor> weights_to_cast(torch::ScalarType type) const;
  void set_grown(int blocks);
  torch::Tensor spread(const torch::Tensor& directions) const;

  std::int64_t feature_dim_;
  std::int64_t grow_every_;
  bool sync_batch_norm_;
  Ranks* ranks_ = &one_rank();
  std::shared_ptr<Backbone> encoder_;
  std::shared_ptr<Mlp> projector_;
  std::shared_ptr<Alignment> alignment_;    // null without one
  std::shared_ptr<MovingAverage> average_;  // null without one
  double average_share_;
};

// Returns the names that model.objective takes.
std::vector<std::string> objective_names();

// Returns the objective that config.objective names, initialised from `seed` alone, but for what
// config.init has weights of (encoder_weights.h). Throws Error if that file cannot be used, and for
// an unknown name.
std::shared_ptr<Objective> make_objective(const ModelConfig& config, std::uint64_t seed);

}  // namespace riffle
