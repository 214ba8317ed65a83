// The files that the pattern in an address names.
#pragma once

#include <set>
#include <string>

namespace riffle {

// Returns the file or folder of exactly that name, or else all that the pattern matches: *, ?,
// [a-z], {a,b}, ~. None if there are none.
std::set<std::string> matching_paths(const std::string& pattern);

}  // namespace riffle
