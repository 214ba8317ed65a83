// A world that changes its subject: classes arrive in groups of related ones, one group after the
// other.
//
//   lifelong:groups=4,permutation=1,2,3,4,overlap=0.1,holdout=0,seed=0
//
//   groups        number of groups; labels are put in order and cut into equal runs
//   permutation   the order in which they come, all numbers from 1
//   overlap       the last share of a group that mixes into the first share of the next, up to 0.5:
//                 the old group becomes rarer, the new one more frequent, linearly
//   holdout       number of pictures of each label that never come: the same ones whatever the
//                 order of the stream below, chosen by their names
//   times         passes over each group within its turn: every picture comes this often
//   seed          of the mixing
//   wordnet       the file of WordNet nouns. Labels must be WordNet ids (n01443537); their order is
//                 that of a depth-first walk
//   list          instead of WordNet: a file with all labels in their order, one per line (up to a
//                 tab). It must have every label of the stream; the runs are those of the list
//   only          a labelled set instead, for probes: the samples of these groups (1 or 1,3) in the
//                 order of the stream below, without mixing
//   part          stream, or heldout: what `holdout` keeps back, in the order of the stream below
//
// Requires a stream below that ends and can be opened several times: it is read once when the shape
// is opened, to count the samples of each label, and once more for every group.
// Every sample that is not held out comes once (or `times`); within a group in the order of the
// stream below, so that order should be mixed (folder:PATH?order=shuffle). Samples without a label
// are skipped and counted.
#pragma once

#include "riffle/stream/shapes/shape.h"

namespace riffle {

inline constexpr double kLifelongOverlap = 0.1;  // by default

std::unique_ptr<Stream> shape_lifelong(Uri& options, const StreamFactory& below);

}  // namespace riffle
