#include "riffle/base/library.h"

#include <spdlog/version.h>

#include "riffle/base/text.h"

namespace riffle {

std::vector<Library> base_libraries() {
  return {{"spdlog", cat(SPDLOG_VER_MAJOR, '.', SPDLOG_VER_MINOR, '.', SPDLOG_VER_PATCH), {}}};
}

}  // namespace riffle
