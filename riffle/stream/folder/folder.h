// A folder of pictures as a stream.
//
//   folder:PATH?order=name&label=dir&watch=0&part=0/1&links=inside&seed=0&size=0&threads=N&
//               original=0
//
//   order     name: by path. time: by time of last change, then path.
//             shuffle: in an order drawn from the seed
//   label     dir: the name of the folder just below PATH that holds the picture, nothing for
//             pictures in PATH itself. none: no labels
//   watch     1: continues with pictures that appear later (see watched_folder.h)
//   part      I/N: every Nth file from file I on (source_part.h); not of a watched folder
//   links     inside: symbolic links that lead out of PATH are skipped and counted.
//             anywhere: they are followed
//   seed      of the shuffled order
//   size      the short side that pictures will be resized to: a much larger JPEG is decoded at a
//             reduced scale, never below it (faster). 0: full size
//   threads   that decode ahead of the reader; 0: none. By default one per core. They change
//             nothing but the speed
//   original  1: pictures keep the file they were decoded from
//
// Reads files whose ending is a picture's, or that have none, at any depth, through symbolic links
// too (a folder reached twice is read once); names that begin with a dot are left out. Unless the
// folder is watched, the list of files is fixed when the stream is opened.
//
// Files that cannot be read or decoded are skipped and counted; next() throws Error if none can be,
// unless the folder is watched. No sample has a clip (kNoClip). The position names the last
// file read, not its number: the stream continues after it even when files were added or removed in
// between, also in shuffled order, where a file's place depends on its path and the seed alone.
// With `part`, which counts the files, the files must stay the same.
#pragma once

#include <memory>

#include "riffle/stream/stream.h"
#include "riffle/stream/uri.h"

namespace riffle {

// Throws Error for an unknown option, and if the folder is missing or, unless it is watched, holds
// no picture.
std::unique_ptr<Stream> open_folder(Uri& uri);

}  // namespace riffle
