// Tar shards of pictures as a stream, as WebDataset writes them.
//
//   shards:GLOB?order=name&label=auto&json_key=label&part=0/1&seed=0&size=0&threads=N&original=0
//
//   GLOB      a file, or files by a pattern (file_pattern.h): plain tar, or compressed with gzip,
//             bzip2, xz, zstd or lz4; told apart by content
//   order     of the shards. name: by path. shuffle: drawn from the seed. Inside a shard pictures
//             keep their order
//   label     cls: the line in NAME.cls. json: text or whole number under `json_key` in NAME.json.
//             dir: the folder that holds the picture. auto: the first of these there is.
//             none: no labels
//   part      I/N: every Nth shard from shard I on (source_part.h)
//   seed      of the shuffled order
//   size      the short side that pictures will be resized to, as in folder:
//   threads   that decode ahead of the reader; 0: none. They change nothing but the speed
//   original  1: pictures keep the file they were decoded from
//
// Members with the same name up to the first dot belong together when they follow one another.
// Those with the ending of a picture are samples; .cls and .json are labels; others
// are ignored, as are names that begin with a dot. The list of shards is fixed when the stream is
// opened.
//
// What cannot be used is skipped and counted: members over 256 MiB, with names that lead out of the
// archive, or that do not decode; labels that cannot be read. A shard that turns out to be broken
// is left at that point. next() throws Error if nothing in any shard can be used. No sample has a
// clip (kNoClip).
//
// The position names the shard and the byte at which a member begins. A plain tar is entered there
// without reading what lies before; a compressed one is unpacked, not decoded, up to there. Shards
// added or removed in between do no harm, unless `part` counts them; one that was rewritten does.
#pragma once

#include <memory>

#include "riffle/stream/stream.h"
#include "riffle/stream/uri.h"

namespace riffle {

// Throws Error for an unknown option, and if no file matches.
std::unique_ptr<Stream> open_shards(Uri& uri);

}  // namespace riffle
