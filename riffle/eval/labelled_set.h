// A set of labelled pictures of any size, for a probe: held if it is small, and otherwise read
// again from its stream whenever it is needed, a batch at a time.
//
// Several ranks (riffle/dist) have the same set, make the same calls, and share the encoding.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "riffle/eval/embedding.h"
#include "riffle/stream/stream.h"

namespace riffle {

// Not thread-safe.
class LabelledSet {
 public:
  // A larger set is not held.
  static constexpr std::uint64_t kMostHeldBytes = std::uint64_t{1} << 30;
  // Opens the stream at its beginning. Called for each reading.
  using Open = std::function<std::unique_ptr<Stream>()>;
  using Use = std::function<void(const at::Tensor& pictures)>;

  using Encode = std::function<at::Tensor(const at::Tensor& pictures, std::int64_t batch_index)>;

  // Reads nothing yet. `max_samples`: 0 for all. `ranks` must outlive this.
  LabelledSet(Open open, std::int64_t max_samples, EncoderInput input,
              std::uint64_t most_held_bytes = kMostHeldBytes, Ranks& ranks = one_rank());
  // Holds these. Requires them to be input.resize px large.
  LabelledSet(LabelledPictures pictures, EncoderInput input);

  // Passes the pictures, [n, resize, resize, 3] uint8, in the order of the stream, `batch` at a
  // time (the last may be fewer). Throws Error for a sample without a label, naming it, for a
  // stream without samples, and for one that gives another number of them than before.
  void for_each(std::int64_t batch, const Use& use);
  // Returns a row for each picture, on the encoder's device: what `encode`, which uses the encoder,
  // makes of them, `batch` at a time. Of several ranks, each encodes every Nth batch.
  at::Tensor encode(Encoder& encoder, std::int64_t batch, const Encode& encode);

  // Reads the set unless it was read before.
  const std::vector<std::string>& labels();
  const EncoderInput& input() const { return input_; }

 private:
  void read(std::int64_t batch, const Use& use);

  Open open_;
  std::int64_t max_samples_;
  EncoderInput input_;
  std::uint64_t most_held_bytes_;
  Ranks& ranks_;
  // Complete after the first reading.
  std::vector<std::string> labels_;
  bool known_ = false;
  // Undefined while the set is not held.
  at::Tensor held_;
};

// Returns the features of the whole set. As for pictures (embedding.h), row i depends on picture i
// alone.
LabelledFeatures embed(Encoder& encoder, LabelledSet& set);

}  // namespace riffle
