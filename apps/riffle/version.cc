#include "apps/riffle/version.h"

#include <vector>

#include <CLI/Version.hpp>
#include <nlohmann/json.hpp>
#include <torch/version.h>

#include "riffle/base/library.h"
#include "riffle/base/text.h"
#include "riffle/dist/libraries.h"
#include "riffle/image/libraries.h"
#include "riffle/stream/libraries.h"
#include "riffle/watch/server.h"

namespace riffle {

std::string version_text() {
#ifdef RIFFLE_CUDA
  const char* device = " (CUDA)";
#else
  const char* device = " (CPU)";
#endif
  std::vector<Library> libraries = {
      {"LibTorch", std::string(TORCH_VERSION) + device, {}},
      {"CLI11", CLI11_VERSION, {}},
      {"nlohmann-json",
       cat(NLOHMANN_JSON_VERSION_MAJOR, '.', NLOHMANN_JSON_VERSION_MINOR, '.',
           NLOHMANN_JSON_VERSION_PATCH),
       {}},
      {"yaml-cpp", RIFFLE_YAML_CPP_VERSION, {}}};
  for (const auto& room : {base_libraries(), image_libraries(), stream_libraries(),
                           dist_libraries(), watch_libraries()}) {
    libraries.insert(libraries.end(), room.begin(), room.end());
  }
  constexpr std::size_t kColumn = 15;
  std::string text = std::string("riffle ") + RIFFLE_VERSION;
  for (const auto& [name, version, gives] : libraries) {
    const std::string space(kColumn - std::min(name.size(), kColumn - 1), ' ');
    text += cat('\n', name, space, version.empty() ? cat("not built in: no ", gives) : version);
  }
  return text;
}

}  // namespace riffle
