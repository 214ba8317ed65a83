#include "riffle/stream/file_pattern.h"

#include <filesystem>
#include <system_error>

#include <glob.h>

namespace riffle {

std::set<std::string> matching_paths(const std::string& pattern) {
  std::error_code unknown;
  if (std::filesystem::exists(pattern, unknown)) return {pattern};
  glob_t found{};
  const int result =
      ::glob(pattern.c_str(), GLOB_NOSORT | GLOB_BRACE | GLOB_TILDE, nullptr, &found);
  std::set<std::string> paths;
  if (result == 0) paths.insert(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  return paths;
}

}  // namespace riffle
