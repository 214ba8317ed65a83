// How the process treats memory that was freed.
#pragma once

namespace riffle {

// Keeps freed memory for the next allocation instead of giving it back to the system. A training
// step frees and takes the same large blocks every time; without this the system clears their pages
// anew at each step. For a program's main(), before it allocates much; the process then stays as
// large as it ever was.
void keep_freed_memory();

}  // namespace riffle
