#include "fuzz/targets.h"

#include "riffle/base/error.h"
#include "riffle/base/log.h"
#include "riffle/base/text.h"

namespace riffle::fuzz {

const std::vector<Target>& targets() {
  static const std::vector<Target> all = {{"jpeg", read_picture},
                                          {"png", read_picture},
                                          {"still", read_picture},
                                          {"exif", read_exif},
                                          {"shard", read_shard},
                                          {"film", read_film},
                                          {"uri", read_uri},
                                          {"shapes", read_shapes},
                                          {"position", read_position},
                                          {"source_position", read_source_position},
                                          {"url_list", read_url_list},
                                          {"address", read_address},
                                          {"http_request", read_http_request},
                                          {"wordnet", read_wordnet},
                                          {"labels", read_labels},
                                          {"safetensors", read_tensors},
                                          {"torch_file", read_torch_tensors},
                                          {"weights", read_weights},
                                          {"manifest", read_a_manifest},
                                          {"state_file", read_state_file},
                                          {"picture_log", read_picture_log},
                                          {"metrics", read_metrics_file},
                                          {"status", read_status_and_probes},
                                          {"result", read_run_result},
                                          {"curate_state", read_curate_state},
                                          {"repeats", read_repeats},
                                          {"config", read_config},
                                          {"study", read_study}};
  return all;
}

const Target& find_target(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& target : targets()) {
    if (target.name == name) return target;
    names.push_back(target.name);
  }
  throw Error(cat("'", name, "' is not a fuzz target; they are ", join(names, ", ")));
}

void fuzz_one(const Target& target, Bytes bytes) {
  set_log_level(LogLevel::quiet);
  try {
    target.read(bytes);
  } catch (const Error&) {
    // Refused, as bad input should be.
  }
}

}  // namespace riffle::fuzz
