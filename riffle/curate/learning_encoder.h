// An encoder that learns from the pictures of a stream while they pass by: a Learner (learner.h) to
// whom they are handed batch by batch.
//
// What it has learned is a function of its configuration and of the batches. Not thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include <ATen/core/Tensor.h>

#include "riffle/model/encoder.h"
#include "riffle/stream/stream.h"
#include "riffle/tensors/named_tensors.h"
#include "riffle/train/learner.h"

namespace riffle {

class LearningEncoder {
 public:
  // Throws Error for a configuration that cannot work, and for train.clock=live.
  explicit LearningEncoder(const LearnerConfig& config);
  ~LearningEncoder();

  // Changes with learn().
  Encoder& encoder();
  // The number of pictures that learn() takes.
  std::int64_t batch() const;
  // Their side, px.
  int size() const;
  // Returns the number of updates so far.
  std::int64_t updates() const;

  // Learns from the next batch. `pictures`: [batch(), size(), size(), 3] uint8. A smaller batch,
  // the end of a stream, teaches nothing.
  void learn(std::span<const Sample> samples, const at::Tensor& pictures);

  // Writes the encoder as `riffle export` does.
  void write(const std::filesystem::path& path);

  // Returns the exact state. restore() throws Error if it is of another configuration.
  NamedTensors save();
  void restore(const NamedTensors& state);

 private:
  class Passing;

  const LearnerConfig config_;
  std::unique_ptr<Passing> passing_;
  std::unique_ptr<Learner> learner_;
};

}  // namespace riffle
