#include "riffle/stream/folder/folder_options.h"

#include <cstddef>
#include <limits>
#include <span>
#include <system_error>
#include <utility>

#include "riffle/base/file.h"
#include "riffle/base/text.h"

namespace riffle {
namespace {

// Returns what `open` makes of the file's bytes, or why they cannot be had.
Decoded load_bytes(const FolderOptions& options, const std::string& path,
                   Decoded (*open)(std::span<const std::byte>, const Decoding&)) {
  const auto file = options.root / path;
  Decoded loaded;
  std::error_code error;
  const auto size = std::filesystem::file_size(file, error);
  if (error) {
    loaded.failure = {kUnreadable, error.message()};
    return loaded;
  }
  if (!options.rules.links_anywhere && leads_out(options.root, file)) {
    loaded.failure = {"leads out", "a link out of the folder; links=anywhere follows it"};
    return loaded;
  }
  if (size > kMaxPictureBytes) {
    loaded.failure = {"too large", bytes_text(size)};
    return loaded;
  }
  try {
    return open(read_bytes(file), options.decoding);
  } catch (const Error& unreadable) {
    loaded.failure = {kUnreadable, unreadable.what()};
  }
  return loaded;
}

}  // namespace

FolderOptions read_folder_options(Uri& uri) {
  FolderOptions options;
  if (uri.path().empty()) throw Error("folder: needs a path, such as folder:/data/photos");
  options.root = uri.path();
  options.order_name = uri.get_choice("order", {"name", "time", "shuffle"});
  if (options.order_name == "time") options.rules.order = ListingOrder::time;
  if (options.order_name == "shuffle") options.rules.order = ListingOrder::shuffle;
  options.watch = uri.get_bool("watch", false);
  options.rules.links_anywhere = uri.get_choice("links", {"inside", "anywhere"}) == "anywhere";
  options.labels = uri.get_choice("label", {"dir", "none"}) == "dir";
  options.rules.seed = static_cast<std::uint64_t>(
      uri.get_integer("seed", 0, 0, std::numeric_limits<std::int64_t>::max()));
  options.part = read_part(uri);
  if (options.watch && options.part.parts > 1) {
    throw Error("folder: a watched folder cannot be divided: part needs watch=0");
  }
  options.decoding = read_decoding(uri);
  uri.refuse_unknown();
  return options;
}

Decoded load_picture(const FolderOptions& options, const std::string& path) {
  return load_bytes(options, path, decode);
}

Decoded pass_over_picture(const FolderOptions& options, const std::string& path) {
  if (!options.decoding.keep_file) return pass_over({}, options.decoding);
  return load_bytes(options, path, pass_over);
}

Sample folder_sample(const FolderOptions& options, const std::string& path, Picture picture,
                     std::uint64_t index) {
  Sample sample;
  sample.picture = std::move(picture);
  sample.index = index;
  sample.key = (options.root / path).string();
  const auto slash = path.find('/');
  if (options.labels && slash != std::string::npos) sample.label = path.substr(0, slash);
  return sample;
}

std::uint64_t parse_given(const std::string& word) {
  const auto given = parse_integer(word, "the count in a folder position");
  if (given < 0) throw Error(cat("the count ", given, " in a folder position is negative"));
  return static_cast<std::uint64_t>(given);
}

Error not_a_position(const FolderOptions& options, const std::string& text) {
  return Error(cat("'", text, "' is not a position in folder:", options.root.string(),
                   "?order=", options.order_name, options.watch ? "&watch=1" : ""));
}

}  // namespace riffle
