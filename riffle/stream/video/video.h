// Films and live video as a stream.
//
//   video:FILMS?order=name&label=dir&part=0/1&seed=0&fps=0&stride=1&clip=0&size=0&threads=N
//   video:ADDRESS?fps=0&stride=1&clip=0&size=0&threads=N&timeout=10
//
//   FILMS     a file, a folder (its films at any depth) or a pattern (file_pattern.h)
//   ADDRESS   http://, https://, rtsp://, rtsps://, rtmp://, rtp://, srt://, tcp://, udp:// or a
//             camera, /dev/video0. A question mark in it is written %3F
//   order     of the films. name: by path. shuffle: drawn from the seed
//   label     dir: the name of the folder that holds the film. none: no labels
//   part      I/N: every Nth film from film I on (source_part.h)
//   seed      of the shuffled order
//   fps       gives the first frame of every 1/fps seconds; 0: all. Never repeats a frame
//   stride    gives the first of every N frames. Not together with fps
//   clip      seconds after which another clip begins; 0: a film is one clip
//   size      frames whose short side is longer are scaled down to it; 0: never
//   threads   films that are decoded at once ahead of the reader, each by one thread; 0: none.
//             They change nothing but the speed
//   timeout   seconds after which a silent live address is connected to again
//
// Frames come in the order they are shown, upright, in RGB; the key is FILM#NUMBER. The list of
// films is fixed when the stream is opened.
//
// A film that cannot be read is skipped and counted; one that is damaged continues at the next key
// frame; one that ends too early or changes its size is cut there. next() throws Error if nothing
// in any film can be decoded.
//
// The position names the film and the frame, which is found again from the key frame before it,
// exactly and without reading the film from its beginning (unless it has no time stamps).
//
// A live address has no exact past: its position counts the samples given, and seek() continues
// from now. It is connected to again for as long as the stream lives, and next() waits meanwhile;
// stop() ends the wait. Only a film over HTTP that states its length ends by itself. A reader too
// slow for a live source loses what the source, the network or the system drop.
#pragma once

#include <memory>

#include "riffle/stream/stream.h"
#include "riffle/stream/uri.h"

namespace riffle {

// Throws Error for an unknown option, and if there is no such film or camera.
std::unique_ptr<Stream> open_video(Uri& uri);

}  // namespace riffle
