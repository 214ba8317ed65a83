#include "riffle/model/model_config.h"

#include "riffle/model/objective.h"

namespace riffle {

void ModelConfig::describe(Fields& fields) {
  fields.add("model.objective", objective, objective_names(),
             "the self-supervised method: what is learned from two views");
  fields.add(
      "model.arch", arch,
      {{"resnet18", Arch::resnet18}, {"resnet50", Arch::resnet50}, {"resnet10", Arch::resnet10}},
      "the encoder's layout");
  fields.add("model.stem", stem,
             {{"standard", Stem::standard}, {"small", Stem::small}, {"stride2", Stem::stride2}},
             "the encoder's first layers: standard for large pictures, small up to 64 px, stride2 "
             "for speed on small ones");
  fields.add("model.width", width, "channels of the encoder's first stage");
  fields.add(
      "model.residual_gamma", residual_gamma,
      "initial scale of the last norm of a residual block; 0: the block begins as the identity");
  fields.add("model.grow_every", grow_every,
             "the encoder begins with one block a stage and gains one every so many updates, last "
             "stage first, until it is the whole of model.arch; 0: it is from the start");
  fields.add("model.projector_hidden", projector_hidden,
             "hidden width of the projector; 0: the encoder's output width");
  fields.add("model.projector_out", projector_out, "width of the tracked features");
  fields.add("model.predictor_hidden", predictor_hidden, "hidden width of the predictor");
  fields.add(
      "model.init", init,
      "safetensors file with the weights the encoder starts from, under torchvision's names; "
      "empty: random weights");
}

}  // namespace riffle
