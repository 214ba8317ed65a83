#include "riffle/study/study_first.h"

#include "riffle/base/file.h"
#include "riffle/base/file_lock.h"
#include "riffle/base/log.h"
#include "riffle/base/text.h"
#include "riffle/model/encoder_weights.h"
#include "riffle/run/model_source.h"
#include "riffle/run/run_folder.h"
#include "riffle/run/training.h"
#include "riffle/tensors/safetensors.h"

namespace riffle {
namespace fs = std::filesystem;
namespace {

// In the metadata of the weights.
constexpr const char* kMadeWith = "config";

fs::path weights_file(const fs::path& out) { return out / "first.safetensors"; }

fs::path first_folder(const fs::path& out) { return out / "runs" / "first"; }

}  // namespace

bool same_config(const std::string& yaml, const Config& config, const fs::path& file) {
  ConfigBuilder made_with;
  made_with.read_yaml_text(yaml, file.string());
  return config_yaml(made_with.build()) == config_yaml(config);
}

bool is_first_done(const fs::path& out) { return fs::exists(weights_file(out)); }

bool is_first_of(const Config& first, const fs::path& out) {
  const fs::path file = weights_file(out);
  if (fs::exists(file)) {
    const auto metadata = read_safetensors(file).metadata;
    const auto made_with = metadata.find(kMadeWith);
    return made_with != metadata.end() && same_config(made_with->second, first, file);
  }
  if (!RunFolder::is_run(first_folder(out))) return true;
  Config begun = RunFolder::open(first_folder(out)).config();
  if (first.learner.train.threads == 0) begun.learner.train.threads = 0;
  return config_yaml(begun) == config_yaml(first);
}

std::optional<fs::path> first_weights(const Config& first, const fs::path& out,
                                      std::int64_t threads) {
  const fs::path file = fs::absolute(weights_file(out));
  make_folders(out);
  const FileLock lock(out / "first.lock", out.string(), IfTaken::wait);
  if (fs::exists(file)) return file;
  const fs::path path = first_folder(out);
  log_info("the first phase: the network that all runs start from");
  Config config = first;
  if (config.learner.train.threads == 0) config.learner.train.threads = threads;
  if ((RunFolder::is_run(path) ? resume(path) : train(config, path)).stopped) return std::nullopt;
  write_network(file, *open_model(path.string()).objective, {{kMadeWith, config_yaml(first)}});
  return file;
}

}  // namespace riffle
