// What streams of a folder share, watched or not: their options, and how a file becomes a sample.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "riffle/base/error.h"
#include "riffle/stream/decoding.h"
#include "riffle/stream/picture_listing.h"
#include "riffle/stream/source_part.h"
#include "riffle/stream/stream.h"
#include "riffle/stream/uri.h"

namespace riffle {

struct FolderOptions {
  std::filesystem::path root;
  std::string order_name;
  ListingRules rules;
  SourcePart part;
  bool watch = false;
  bool labels = true;
  Decoding decoding;
};

// Throws Error for an unknown option or a value out of range.
FolderOptions read_folder_options(Uri& uri);

// The reason under which files that cannot be read are skipped.
constexpr const char* kUnreadable = "unreadable";

// Reads and decodes the file at `path`, relative to the root. Any thread.
Decoded load_picture(const FolderOptions& options, const std::string& path);
// Returns the same without decoding it, and without reading it unless pictures keep their files.
Decoded pass_over_picture(const FolderOptions& options, const std::string& path);

// Returns the sample of the picture at `path`, relative to the root.
Sample folder_sample(const FolderOptions& options, const std::string& path, Picture picture,
                     std::uint64_t index);

// Returns the number of samples given, the second word of every folder position. Throws Error if
// it is not one.
std::uint64_t parse_given(const std::string& word);

// Returns the error of a text that is not a position of the folder.
Error not_a_position(const FolderOptions& options, const std::string& text);

}  // namespace riffle
