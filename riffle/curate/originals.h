// The pictures of a stream as they were: their files, byte for byte, where the source has files.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "riffle/stream/stream.h"

namespace riffle {

// What becomes of a picture that has no file: a JPEG of high quality, or a PNG, which loses
// nothing.
enum class Encoding { jpeg, png };

// Opens a stream of which every picture has its file: the bytes that were read, or one made here
// where there are none (a frame of a film, a generated picture, what a shape made). Throws Error as
// open_stream() does.
std::unique_ptr<Stream> open_with_originals(const std::string& uri, const std::string& shapes,
                                            Encoding encoding = Encoding::jpeg);

// Returns where to put a picture, relative to a folder: "cat/000000000012-IMG_7.jpg". The label is
// the folder, as streams read labels; the name has the index, the end of the key, and the ending
// that the content has. No label and no key can lead out of the folder.
std::string original_path(const Sample& sample, std::span<const std::byte> content);
// Returns whether original_path() gives such a path to the sample of that index.
bool is_original_path(const std::string& path, std::uint64_t index);

}  // namespace riffle
