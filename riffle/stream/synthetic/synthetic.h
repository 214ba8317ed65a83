// The embedded stream: clips of a textured object that moves over a textured background, without
// end and without files.
//
//   synthetic:?frames=64&classes=20&size=32&seed=0&order=random&samples=0
//
//   frames    frames per clip (N_seq)
//   classes   number of classes, up to 49. A class is the texture of the object and the texture of
//             the background, never a colour; the object's shape says nothing of it. A label reads
//             "stripes-on-checker"
//   size      of the square picture, in pixels
//   seed      two seeds give two streams of the same distribution that share no clip
//   samples   after which the stream ends; 0: never
//   order     random: the class of each clip is drawn independently.
//             lifelong: classes arrive in `groups` (default 4) of similar ones, `group_clips`
//             (default 256) clips per group, and start again after the last. Around a border, over
//             the last and the first tenth of the groups beside it, one fades into the other.
//             decorrelated: the frames of the random order, each once, shuffled within windows of
//             `window` samples. No stream could deliver that: it is the yardstick for what
//             correlation costs.
//
// A frame is a function of the seed, its clip and its number in the clip alone; seek costs nothing.
#pragma once

#include <memory>

#include "riffle/stream/stream.h"
#include "riffle/stream/uri.h"

namespace riffle {

// Throws Error for an unknown option, one of another order, and a value out of range.
std::unique_ptr<Stream> open_synthetic(Uri& uri);

}  // namespace riffle
