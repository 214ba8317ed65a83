// noise:amount=20,seed=0 adds noise to every picture, as a poor sensor does: `amount` is its
// standard deviation in levels of 255.
#pragma once

#include "riffle/stream/shapes/shape.h"

namespace riffle {

std::unique_ptr<Stream> shape_noise(Uri& options, const StreamFactory& below);

}  // namespace riffle
