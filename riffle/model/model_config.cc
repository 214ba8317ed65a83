#include "riffle/model/model_config.h"

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/model/objective.h"

namespace riffle {
namespace {

// Far beyond any use; products of two layers' widths stay whole numbers.
constexpr std::int64_t kWidest = 65536;

void check_width(const char* key, std::int64_t value, std::int64_t least = 1) {
  if (value >= least && value <= kWidest) return;
  throw Error(cat(key, " is ", value, "; it must be between ", least, " and ", kWidest));
}

void check_weight(const char* key, double value) {
  if (!(value >= 0)) throw Error(cat(key, " is ", value, "; it must be at least 0"));
}

}  // namespace

void ModelConfig::describe(Fields& fields) {
  fields.add("model.objective", objective, objective_names(),
             "the self-supervised method: what is learned from two views");
  fields.add("model.arch", arch,
             {{"resnet18", Arch::resnet18},
              {"resnet50", Arch::resnet50},
              {"resnet10", Arch::resnet10},
              {"vit-s", Arch::vit_s},
              {"vit-b", Arch::vit_b}},
             "the encoder's layout: a ResNet, or a Vision Transformer");
  fields.add("model.stem", stem,
             {{"standard", Stem::standard}, {"small", Stem::small}, {"stride2", Stem::stride2}},
             "the encoder's first layers: standard for large pictures, small up to 64 px, stride2 "
             "for speed on small ones; of a transformer, patches of 16, 4 and 8 px");
  fields.add("model.width", width,
             "channels of the encoder's first stage; of a transformer, of each head (vit-s has 6)");
  fields.add(
      "model.residual_gamma", residual_gamma,
      "initial scale of the last norm of a residual block; 0: the block begins as the identity");
  fields.add("model.grow_every", grow_every,
             "the encoder begins with one block a stage and gains one every N updates, last stage "
             "first, until it is the whole of model.arch; 0: it is from the start");
  fields.add("model.projector_hidden", projector_hidden,
             "hidden width of the projector; 0: the encoder's output width");
  fields.add("model.projector_out", projector_out, "width of the tracked features");
  fields.add("model.predictor_hidden", predictor_hidden,
             "hidden width of the predictor of simsiam and byol");
  fields.add("model.temperature", temperature,
             "simclr: what similarities are divided by; the smaller, the more the nearest pictures "
             "count");
  fields.add("model.ema", ema,
             "byol: share of itself that the target, a moving average of the network, keeps at an "
             "update");
  fields.add("model.vicreg_invariance", vicreg_invariance, "vicreg: weight of the invariance");
  fields.add("model.vicreg_variance", vicreg_variance, "vicreg: weight of the variance");
  fields.add("model.vicreg_covariance", vicreg_covariance, "vicreg: weight of the covariance");
  fields.add("model.visreg_invariance", visreg_invariance, "visreg: weight of the invariance");
  fields.add("model.visreg_regulariser", visreg_regulariser,
             "visreg: weight of centre, scale and shape");
  fields.add("model.visreg_slices", visreg_slices,
             "visreg: random directions along which the shape is compared, others at every update");
  fields.add("model.average", average,
             "share of itself that a moving average of the encoder keeps at an update, such as "
             "0.999; probes, embed, export and curate then use that average; 0: none");
  fields.add("model.sync_batch_norm", sync_batch_norm,
             "on several ranks: batch-norm statistics over the whole batch; otherwise each rank's");
  fields.add(
      "model.init", init,
      "safetensors file with the weights the encoder starts from, under torchvision's names, or "
      "the whole network, under riffle's; empty: random weights");
  // After all keys of the model: config.yaml has each room once.
  fields.add("align.weight", align_weight,
             "any method: weight of a loss that holds embeddings of replayed samples to those of a "
             "moving average of the network; 0: none");
  fields.add("align.ema", align_ema, "share of itself that this moving average keeps at an update");
}

void ModelConfig::validate() const {
  check_width("model.width", width);
  check_width("model.projector_hidden", projector_hidden, /*least=*/0);
  check_width("model.projector_out", projector_out);
  check_width("model.predictor_hidden", predictor_hidden);
  check_width("model.visreg_slices", visreg_slices);
  check_weight("align.weight", align_weight);
  if (!(align_ema >= 0 && align_ema < 1)) {
    throw Error(cat("align.ema is ", align_ema, "; it must be at least 0 and below 1"));
  }
  if (!(average >= 0 && average < 1)) {
    throw Error(cat("model.average is ", average, "; it must be at least 0 and below 1"));
  }
  if (!(temperature > 0)) {
    throw Error(cat("model.temperature is ", temperature, "; it must be above 0"));
  }
  if (!(ema >= 0 && ema < 1)) {
    throw Error(cat("model.ema is ", ema, "; it must be at least 0 and below 1"));
  }
  check_weight("model.vicreg_invariance", vicreg_invariance);
  check_weight("model.vicreg_variance", vicreg_variance);
  check_weight("model.vicreg_covariance", vicreg_covariance);
  check_weight("model.visreg_invariance", visreg_invariance);
  check_weight("model.visreg_regulariser", visreg_regulariser);
  if (is_transformer(arch) && residual_gamma != 0.0) {
    throw Error(
        cat("model.residual_gamma=", residual_gamma,
            " needs a ResNet; a transformer takes 0: it has no norm that this would scale"));
  }
  if (grow_every == 0) return;
  if (grow_every < 0) {
    throw Error(cat("model.grow_every is ", grow_every, "; it must be at least 0"));
  }
  if (is_transformer(arch)) {
    throw Error(
        cat("model.grow_every=", grow_every, " needs a ResNet; a transformer does not grow"));
  }
  if (residual_gamma != 0.0) {
    throw Error(cat("model.grow_every=", grow_every, " needs model.residual_gamma=0, not ",
                    residual_gamma, ": a block that is added must begin as the identity"));
  }
  if (!init.empty()) {
    throw Error(cat("model.grow_every=", grow_every, " cannot go with model.init=", init,
                    ": the blocks to be added would not begin as the identity"));
  }
}

}  // namespace riffle
