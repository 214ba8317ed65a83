#include "riffle/model/backbone.h"

#include "riffle/model/resnet.h"
#include "riffle/model/vision_transformer.h"

namespace riffle {

std::shared_ptr<Backbone> make_backbone(const ModelConfig& config, const Init& init) {
  if (is_transformer(config.arch)) return std::make_shared<VisionTransformer>(config, init);
  return std::make_shared<ResNet>(config, init);
}

}  // namespace riffle
