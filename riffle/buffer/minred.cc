#include "riffle/buffer/minred.h"

namespace riffle {

NearestIndexConfig MinRed::index_config(const PolicySetting& setting) {
  NearestIndexConfig index;
  index.slots = setting.slots;
  index.dim = setting.feature_dim;
  index.type = setting.config.feature_type;
  index.tie = setting.config.tie;
  index.device = setting.device;
  return index;
}

MinRed::MinRed(const PolicySetting& setting)
    : PairPolicy(setting.config, index_config(setting), "redundant") {}

}  // namespace riffle
