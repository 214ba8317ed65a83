// The descriptors 0, 1 and 2, which a caller may have closed.
#pragma once

namespace riffle {

// Opens /dev/null in place of each standard stream that is closed. Otherwise the next file opened
// would get its number, and messages would be written into that file. Must be called before any
// file is opened.
void open_standard_streams();

}  // namespace riffle
