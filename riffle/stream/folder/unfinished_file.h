// Whether a file has all its bytes already.
#pragma once

#include <filesystem>

namespace riffle {

// Returns true for symbolic links, and for files that have a second name.
bool is_link(const std::filesystem::path& path);

// Returns whether some program still has the file open for writing. Asks the kernel for a read
// lease, which it grants only if nobody writes, and gives it back at once. Returns false for links,
// whose closing is noticed elsewhere, and if it cannot be known: for files of other users, unless
// privileged, and on file systems without leases. Costs a few system calls. Thread-safe.
bool is_unfinished(const std::filesystem::path& path);

}  // namespace riffle
