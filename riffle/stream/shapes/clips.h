// clips:length=64,size=0,pace=16,pick=first,seed=0 makes clips of N frames: N_seq of the paper.
//
//   length   frames per clip
//   size     side of the frames in pixels. 0: half the short side of a still, so that no frame is
//            enlarged; frames of a video stay as they are
//   pace     frames the camera takes from one place of its path to the next: more is slower, and
//            the frames of a clip are more alike
//   pick     which frames of a clip: the first N, or N at random places, in order of time
//            (random_frames.h)
//   seed     of the camera's path and of the random places
//
// A still (a sample without a clip) becomes N frames along a smooth random camera path over it. Of
// a clip, as a video has them, N frames are kept and the others dropped (but read and
// decoded); a shorter clip stays as it is, and one whose first frame comes again, as in a loop,
// begins again. Clips are numbered from 0 as they come, and keep their label.
#pragma once

#include "riffle/stream/shapes/shape.h"

namespace riffle {

std::unique_ptr<Stream> shape_clips(Uri& options, const StreamFactory& below);

}  // namespace riffle
