// Whole files, read and written so that a reader or a crash never meets half of one.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace riffle {

// The content of a file. Throws Error naming the path when it cannot be read.
std::vector<std::byte> read_bytes(const std::filesystem::path& path);
std::string read_text(const std::filesystem::path& path);

// Replaces `path` in one step: a temporary file in the same folder, fsync, rename, fsync of the
// folder. Parent folders are made. Throws Error (kind failure) and leaves the old file untouched
// when any step fails.
void write_atomically(const std::filesystem::path& path, std::span<const std::byte> content);
void write_atomically(const std::filesystem::path& path, std::string_view content);

}  // namespace riffle
