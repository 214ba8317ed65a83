// Pictures that carry nothing, as cameras and crawls deliver them: glitches, not subjects.
//
// Each is a function of its kind, the random numbers and the picture it stands beside, whose size
// it has. No two are alike: colours, phases and noise are drawn for each.
#pragma once

#include <string>
#include <vector>

#include "riffle/base/random.h"
#include "riffle/image/picture.h"

namespace riffle {

// "noise", "dark", "overexposed", "gradient", "blocks", "halfdecoded" and "testcard".
const std::vector<std::string>& junk_kinds();

// Requires `kind` < junk_kinds().size() and a picture that is not empty.
Picture junk_frame(std::size_t kind, const Picture& beside, Random random);

}  // namespace riffle
