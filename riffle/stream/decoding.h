// What the sources of picture files share: the options `size`, `threads` and `original`, and
// pictures decoded ahead of the reader within bounded memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "riffle/image/codec.h"
#include "riffle/stream/uri.h"

namespace riffle {

// A file, member or download larger than this is skipped unread.
constexpr std::uint64_t kMaxPictureBytes = std::uint64_t{256} << 20;
// The most bytes that decoded pictures may take while they wait for the reader.
constexpr std::uint64_t kAheadBytes = std::uint64_t{64} << 20;

struct Decoding {
  DecodeOptions options;
  // The picture keeps a copy of the bytes that it was decoded from.
  bool keep_file = false;
  int threads = 0;  // 0: decodes in the reader's thread
};

// Sets the number of threads that a source decodes with unless its address says it; before that,
// one per core. For programs that share a machine. Not thread-safe.
void set_decoding_threads(int threads);

// Reads `size`, the short side that pictures will be resized to, `threads`, and `original`, whether
// pictures keep the files they were decoded from.
Decoding read_decoding(Uri& uri);

// A picture, or why there is none.
struct Decoded {
  std::optional<Picture> picture;
  DecodeFailure failure;
};

// Tells the kind by the content, whatever the name: JPEG, PNG, in builds with libheif HEIC and
// AVIF, and in builds with FFmpeg WebP, TIFF, BMP and GIF.
Decoded decode(std::span<const std::byte> bytes, const Decoding& decoding);

// Returns a picture without pixels, for a reader that leaves decoding to another
// (Stream::divide()); with its file, if pictures keep theirs.
Decoded pass_over(std::span<const std::byte> bytes, const Decoding& decoding);

// Returns the memory taken, in bytes. Even the smallest counts for something, so that tiny pictures
// and failures do not pile up by the thousand.
std::uint64_t weight(const Decoded& decoded);

}  // namespace riffle
