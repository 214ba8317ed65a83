// A folder of pictures as a stream.
//
//   folder:PATH?order=name&label=dir&watch=0&seed=0&size=0&threads=N
//
//   order     name: by path. time: by time of last change, then path.
//             shuffle: in an order drawn from the seed
//   label     dir: the name of the folder just below PATH that holds the picture, nothing for
//             pictures in PATH itself. none: no labels
//   watch     1: goes on with pictures that appear later; next() waits for them until stop()
//   seed      of the shuffled order
//   size      the short side that pictures will be brought to: a JPEG far larger is decoded at a
//             reduced scale, never below it (faster). 0: full size
//   threads   that decode ahead of the reader; 0: none. By default one per core. They change
//             nothing but the speed
//
// Files ending in .jpg, .jpeg or .png in any case, at any depth, through symbolic links too (a
// folder reached twice is read once); names that begin with a dot are left out. Unless the folder
// is watched, which files there are is settled when the stream is opened.
//
// Where it is watched (by inotify, so on local disks), what was there comes in the order asked for,
// then what appears, in the order of the files' last change. A file appears when it is closed after
// writing, moved in or linked, about 50 ms later; one that is written again appears again, as does
// one that is renamed. Folders that appear are watched too. One that somebody still has open for
// writing waits until it is closed, however it was found; where the kernel does not tell (files of
// other users), one found in a folder that appeared may be skipped as truncated, and comes when it
// is closed. An empty folder is no error, nor one in which nothing decodes.
//
// Files that cannot be read or decoded are skipped and counted; a folder in which none can be is an
// Error from next(). Every picture stands alone (kNoClip). The position names the last file read,
// not its number: the stream goes on behind it even when files were added or removed in between,
// also in shuffled order, where a file's place depends on its path and the seed alone. Where the
// folder is watched, the position also holds when the stream was first opened: what appeared since,
// also while no program ran, comes behind what was there, and files that were begun but closed late
// are not lost. Two things cannot be told from what was read before: pictures inside a folder that
// was moved in as a whole while no program ran (or of which more than 100 were still to be read
// when it stopped), and a picture written anew whose last byte is older than others read since, if
// it was closed while no program ran.
#pragma once

#include <memory>

#include "riffle/stream/stream.h"
#include "riffle/stream/uri.h"

namespace riffle {

// Refuses options it does not know. Throws Error when the folder is missing or holds no picture.
std::unique_ptr<Stream> open_folder(Uri& uri);

}  // namespace riffle
