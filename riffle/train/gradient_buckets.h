// Parameters in groups, buckets, whose gradients become ready one after the other while backward()
// runs, so that those of a bucket can be exchanged while the others are still computed.
//
// Not thread-safe; backward() calls from the thread that it computes on.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include <torch/types.h>

namespace riffle {

class GradientBuckets {
 public:
  struct Bucket {
    std::vector<torch::Tensor> parameters;
    std::int64_t numbers = 0;  // of all gradients
    std::int64_t missing = 0;  // gradients that are not ready yet
  };
  // Called when a gradient lies with its parameter, with the index of the bucket that is complete
  // now, if one is.
  using Ready = std::function<void(std::optional<std::size_t>)>;

  // `most`: numbers in a bucket, unless one parameter has more.
  GradientBuckets(std::vector<torch::Tensor> parameters, std::int64_t most, Ready ready);
  ~GradientBuckets();
  GradientBuckets(const GradientBuckets&) = delete;

  // Must be called before each backward(), which must find no gradients. Returns whether the
  // buckets are others than before: those of the parameters that require a gradient now.
  bool begin();
  // Must be called after backward(): what it did not reach counts as ready, without a gradient.
  void finish();

  const std::vector<Bucket>& buckets() const { return buckets_; }

 private:
  void fill();
  void take(std::size_t bucket);

  const std::vector<torch::Tensor> parameters_;
  const std::int64_t most_;
  const Ready ready_;
  std::vector<bool> learns_;  // by parameter; empty until the first begin()
  std::vector<Bucket> buckets_;
};

}  // namespace riffle
