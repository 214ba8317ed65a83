// What one update does to the network: two views of the pictures drawn, forward, backward, SGD.
//
// A device may have a faster way than plain operations; all have the same result, up to the
// rounding of the precision asked for. The views are a function of the seed, the step and the place
// in the batch, the batch of all ranks if there are several. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <ATen/core/Tensor.h>

#include "riffle/augment/augment_config.h"
#include "riffle/buffer/store.h"
#include "riffle/dist/ranks.h"
#include "riffle/model/model_config.h"
#include "riffle/model/objective.h"
#include "riffle/tensors/named_tensors.h"
#include "riffle/train/device.h"
#include "riffle/train/train_config.h"

namespace riffle {

struct UpdaterConfig {
  ModelConfig model;
  AugmentConfig augment;
  TrainConfig train;
  // Side of the pictures that views are made from, px.
  std::int64_t picture_size = 0;
  std::uint64_t seed = 0;
  std::string device = "cpu";
};

class Updater {
 public:
  struct Outcome {
    std::int64_t step = 0;
    double loss = 0;
    // Collapse gauge, see ObjectiveOutput.
    double std = 0;
  };

  virtual ~Updater() = default;

  // Makes an update; a GPU only begins it. Returns the features, [batch, feature_dim] on the
  // device, valid until the next update. `pictures` may lie in host or device memory. `step` counts
  // updates from 0.
  virtual at::Tensor update(const Pictures& pictures, std::int64_t step, double lr,
                            double predictor_lr) = 0;

  // Waits for the last update and returns how it went, or how an earlier one went whose loss was
  // not finite: from then on the network is of no use.
  virtual Outcome outcome() = 0;

  // Returns features of samples that just arrived, from the pictures as they are, in evaluation
  // mode: random views would make the frames of a clip look different from one another.
  virtual at::Tensor arrival_features(const Pictures& pictures) = 0;

  // Returns the network as the last update left it, on the device.
  virtual Objective& objective() = 0;

  // Returns the optimiser's momenta by the parameters' names, as copies on the CPU. load_momenta()
  // throws Error for names or shapes that are not the parameters'.
  virtual NamedTensors momenta() = 0;
  virtual void load_momenta(const NamedTensors& momenta) = 0;
};

// Returns the fastest updater that the device has. `objective`: what it trains, which moves to the
// device; default: what config.model names. Throws Error as open_device() does, and for a precision
// that the device lacks.
//
// Several ranks make each update together: each brings its part of config.train.batch
// (batch_part.h), and all have the same weights after it. `ranks` must outlive the updater.
std::unique_ptr<Updater> make_updater(const UpdaterConfig& config,
                                      std::shared_ptr<Objective> objective = nullptr,
                                      Ranks& ranks = one_rank());

}  // namespace riffle
