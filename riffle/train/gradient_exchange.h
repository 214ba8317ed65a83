// Makes the gradients of all ranks (riffle/dist) their mean.
//
// While backward() runs, the gradients that are ready are collected in buckets, and a full bucket
// is summed over all ranks at once, so that much of the exchange is over when backward() is. One
// rank alone pays nothing. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <torch/types.h>

#include "riffle/dist/ranks.h"
#include "riffle/model/objective.h"

namespace riffle {

class GradientExchange {
 public:
  // `objective`, which is on its device, and `ranks` must outlive this.
  GradientExchange(Objective& objective, Ranks& ranks);
  ~GradientExchange();
  GradientExchange(const GradientExchange&) = delete;

  // Must be called before backward(), which must find no gradients.
  void begin();
  // Must be called after backward(), on all ranks: the gradients are then the mean over all ranks.
  // So are running statistics, if each rank has its own (model.sync_batch_norm).
  void finish();

 private:
  struct Parameter {
    torch::Tensor tensor;
    bool learns = false;  // requires a gradient
    bool ready = false;   // its gradient lies in its bucket
    std::optional<unsigned> hook = std::nullopt;
    // Where its gradient is collected.
    std::size_t bucket = 0;
    std::int64_t offset = 0;
  };
  // Parameters whose gradients become ready one after the other, nearly.
  struct Bucket {
    std::int64_t size = 0;
    std::int64_t parameters = 0;
    std::int64_t missing = 0;
    at::Tensor values;  // on the CPU
    std::unique_ptr<Ranks::Sum> sum;
  };

  void fill_buckets();
  at::Tensor collected(const Parameter& parameter) const;
  void take(Parameter& parameter, const at::Tensor& gradient);
  void average_statistics();

  Objective& objective_;
  Ranks& ranks_;
  std::vector<Parameter> parameters_;
  std::vector<Bucket> buckets_;
};

}  // namespace riffle
