// The network that learns.
#pragma once

#include <cstdint>
#include <string>

#include "riffle/base/fields.h"

namespace riffle {

enum class Arch { resnet18, resnet50, resnet10, vit_s, vit_b };
// Whether it is a Vision Transformer; the others are ResNets.
constexpr bool is_transformer(Arch arch) { return arch == Arch::vit_s || arch == Arch::vit_b; }
enum class Stem {
  // 7x7 stride 2 and max-pool; of a transformer: patches of 16 px
  standard,
  // 3x3 stride 1, for pictures up to 64 px; patches of 4 px
  small,
  // 3x3 stride 2, no pool; patches of 8 px
  stride2,
};

struct ModelConfig {
  // One of objective_names().
  std::string objective = "simsiam";
  Arch arch = Arch::resnet18;
  Stem stem = Stem::standard;
  // Channels of the first stage, or of a transformer's head.
  std::int64_t width = 64;
  // Initial scale of a block's last norm; 0: the block begins as the identity.
  double residual_gamma = 0.0;
  // Updates after which the encoder, beginning with one block a stage, gains one more; 0: it has
  // all from the start.
  std::int64_t grow_every = 0;
  // 0: the encoder's width.
  std::int64_t projector_hidden = 0;
  // Width of the tracked features.
  std::int64_t projector_out = 2048;
  // simsiam, byol
  std::int64_t predictor_hidden = 512;
  // simclr: what cosine similarities are divided by.
  double temperature = 0.2;
  // byol: share of itself that the moving average keeps at an update.
  double ema = 0.99;
  // vicreg: weights of its terms.
  double vicreg_invariance = 25.0;
  double vicreg_variance = 25.0;
  double vicreg_covariance = 1.0;
  // visreg: weights of the invariance and of the regulariser (centre, scale and shape).
  double visreg_invariance = 4.0;
  double visreg_regulariser = 6.0;
  // visreg: random directions an update.
  std::int64_t visreg_slices = 1024;
  // Weight of a loss that holds embeddings of replayed samples to those of a moving average of the
  // network, for any objective; 0: none.
  double align_weight = 0.0;
  // Share of itself that this moving average keeps at an update.
  double align_ema = 0.999;
  // Share of itself that a moving average of the encoder keeps at an update. It is then what
  // encode() uses, and so probes, embed, export and curate; training does not see it. 0: none.
  double average = 0.0;
  // Over several ranks: batch-norm statistics are those of the whole batch, so that the number of
  // ranks does not change what is learned; otherwise each rank's own.
  bool sync_batch_norm = true;
  // Safetensors file with the first weights of the encoder, or of the whole network; empty: random
  // ones.
  std::string init = {};

  void describe(Fields& fields);
  // Throws Error naming the key whose value makes no sense.
  void validate() const;
};

}  // namespace riffle
