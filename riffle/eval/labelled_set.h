// A set of labelled pictures of any size, for a probe: held if it is small, and otherwise read
// again from its stream whenever it is needed, a batch at a time.
//
// Several ranks (riffle/dist) have the same set, make the same calls, and share the work: each
// decodes, holds and encodes every Nth batch.
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
  // Pictures that are encoded at once.
  static constexpr std::int64_t kBatch = 256;
  // Opens the stream at its beginning. Called for each reading.
  using Open = std::function<std::unique_ptr<Stream>()>;
  // Returns rows for the pictures of a batch, [n, resize, resize, 3] uint8.
  using Encode = std::function<at::Tensor(const at::Tensor& pictures, std::int64_t batch_index)>;

  // Reads nothing yet. `max_samples`: 0 for all. `ranks` must outlive this.
  LabelledSet(Open open, std::int64_t max_samples, EncoderInput input,
              std::uint64_t most_held_bytes = kMostHeldBytes, Ranks& ranks = one_rank());
  // Holds these. Requires them to be input.resize px large.
  LabelledSet(LabelledPictures pictures, EncoderInput input);

  // Returns a row for each picture, in the order of the stream, on the device: what `encode` makes
  // of them, batch by batch. Throws Error for a sample without a label, naming it, for a stream
  // without samples, and for one that gives others than before.
  at::Tensor encode(at::Device device, const Encode& encode);

  // Reads the set unless it was read before.
  const std::vector<std::string>& labels();
  const EncoderInput& input() const { return input_; }

 private:
  // Takes this rank's pictures of a round (picture_rounds.h); undefined if it has none.
  using UseRound = std::function<void(const at::Tensor& own)>;
  void for_each_round(const UseRound& use);
  void read(const UseRound& use);

  Open open_;
  std::int64_t max_samples_;
  EncoderInput input_;
  std::uint64_t most_held_bytes_;
  Ranks& ranks_;
  // Complete after the first reading.
  std::vector<std::string> labels_;
  bool known_ = false;
  // This rank's pictures of each round; empty while the set is not held.
  std::vector<at::Tensor> held_;
};

// Returns the features of the whole set. As for pictures (embedding.h), row i depends on picture i
// alone.
LabelledFeatures embed(Encoder& encoder, LabelledSet& set);

}  // namespace riffle
