// Whether a file has all its bytes already.
#pragma once

#include <filesystem>

namespace riffle {

// Symbolic links, and files that have a second name.
bool is_link(const std::filesystem::path& path);

// Whether some program still has the file open for writing. Asks the kernel for a read lease, which
// it grants only when nobody writes, and gives it back at once. False for links, whose closing is
// noticed elsewhere, and where it cannot be known: for files of other users, unless privileged, and
// on file systems without leases. Cost: a few system calls. Any thread.
bool is_unfinished(const std::filesystem::path& path);

}  // namespace riffle
