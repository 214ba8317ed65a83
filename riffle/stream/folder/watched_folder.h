// A folder of pictures that is watched: first the pictures that are there, in the order asked for,
// then those that appear, in the order of the files' last change; next() waits for them until
// stop().
//
// A file appears when it is closed after writing, moved in or linked, about 50 ms later; one that
// is written again appears again, as does one that is renamed. Folders that appear are watched too.
// A file that somebody still has open for writing waits until it is closed, however it was found;
// where the kernel does not tell (files of other users), one found in a folder that appeared may be
// skipped as truncated, and comes when it is closed. An empty folder is not an error, nor one in
// which nothing decodes. Folders are watched by inotify, so only on local disks.
//
// The position also holds when the stream was first opened: what appeared since, also while no
// program ran, comes after what was there, and files that were begun but closed late are not lost.
// Two things cannot be told from what was read before: pictures inside a folder that was moved in
// as a whole while no program ran (or of which more than 100 were still to be read when it
// stopped), and a picture written again whose last byte is older than others read since, if it was
// closed while no program ran.
#pragma once

#include <memory>

#include "riffle/stream/folder/folder_options.h"
#include "riffle/stream/stream.h"

namespace riffle {

// Throws Error if the folder is missing or cannot be watched.
std::unique_ptr<Stream> open_watched_folder(FolderOptions options);

}  // namespace riffle
