// still:length=512,share=0.5,seed=0 is a camera that stands still now and then: the same picture
// again and again, but for the noise of the sensor.
//
//   length   frames it stands still
//   share    how much of what comes is such frames, on average: less than 1
//   seed     of where it stands still, and of the noise
//
// The frames are inserted: every sample of the stream below still comes, in its order. They have
// the label of the picture they repeat and its clip; a picture without a clip gets one, with them.
#pragma once

#include "riffle/stream/shapes/shape.h"

namespace riffle {

std::unique_ptr<Stream> shape_still(Uri& options, const StreamFactory& below);

}  // namespace riffle
