// Films and live video as a stream.
//
//   video:FILMS?order=name&label=dir&seed=0&fps=0&stride=1&clip=0&size=0&threads=N
//   video:ADDRESS?fps=0&stride=1&clip=0&size=0&threads=N&timeout=10
//
//   FILMS     a file, a folder (its films at any depth) or a pattern with *, ?, [...], {a,b}
//   ADDRESS   http://, https://, rtsp://, rtsps://, rtmp://, rtp://, srt://, tcp://, udp:// or a
//             camera, /dev/video0. A question mark in it is written %3F
//   order     of the films. name: by path. shuffle: drawn from the seed
//   label     dir: the name of the folder that holds the film. none: no labels
//   seed      of the shuffled order
//   fps       gives the first frame of every 1/fps seconds; 0: all. Never repeats a frame
//   stride    gives every so many frames. Not together with fps
//   clip      seconds after which another clip begins; 0: a film is one clip
//   size      frames whose short side is longer are scaled down to it; 0: never
//   threads   so many films are decoded at once ahead of the reader, each by one thread; 0: none.
//             They change nothing but the speed
//   timeout   seconds after which a silent live address is connected to anew
//
// Frames come in the order they are shown, upright, in RGB; the key is FILM#NUMBER. Which films
// there are is settled when the stream is opened.
//
// A film that cannot be read is skipped and counted; one that is damaged goes on at the next key
// frame; one that ends too early or changes its size is cut there. Films of which nothing can be
// decoded are an Error from next().
//
// The position names the film and the frame, which is found again from the key frame before it,
// exactly and without reading the film from its beginning (but where it has no time stamps).
//
// A live address has no exact past: its position counts the samples given, and seek() just goes on
// from now. It is connected to again for as long as the stream lives, and next() waits meanwhile;
// stop() ends the wait. Only a film behind HTTP that states its length ends by itself. A reader too
// slow for a live source loses what the source, the network or the system drop.
#pragma once

#include <memory>

#include "riffle/stream/stream.h"
#include "riffle/stream/uri.h"

namespace riffle {

// Refuses options it does not know. Throws Error when there is no such film or camera.
std::unique_ptr<Stream> open_video(Uri& uri);

}  // namespace riffle
