// What a pass of `riffle curate` leaves to be continued.

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "fuzz/input_folder.h"
#include "fuzz/targets.h"

#include "riffle/base/file.h"
#include "riffle/base/text.h"
#include "riffle/curate/curate.h"
#include "riffle/curate/selection.h"
#include "riffle/run/model_source.h"
#include "riffle/tensors/safetensors.h"

namespace riffle::fuzz {
namespace {

namespace fs = std::filesystem;

const InputFolder& curate_inputs() {
  static const InputFolder folder;
  return folder;
}

fs::path seed(const char* name) { return fs::path(RIFFLE_SOURCE_DIR) / "fuzz/corpus" / name; }

// The settings of the pass that the seeds are of (make_seeds.py).
CurateConfig seeds_config() {
  CurateConfig config;
  config.stream = "synthetic:?frames=2&size=16&classes=4&samples=16";
  config.keep = 2;
  config.per = Quota::label;
  config.out = curate_inputs().path() / "out";
  config.encoder = "weights.safetensors";
  config.input = 16;
  config.batch = 4;
  config.assignments = true;
  config.save_every_s = 0;
  return config;
}

// Returns where the pass has its pictures.
std::vector<std::string> seeds_pictures() {
  const NamedTensors state = read_safetensors(seed("curate_state/whole")).tensors;
  std::vector<std::string> all;
  for (std::int64_t group = 0; group < find_integers(state, "numbers")[2]; ++group) {
    const NamedTensors part = find_part(state, cat("selector.", group, "."));
    const auto files = find_texts(part, "files", std::ssize(find_integers(part, "slots")));
    all.insert(all.end(), files.begin(), files.end());
  }
  return all;
}

}  // namespace

// A state that the pass continues from, to its end. Nothing outside of its folder may be touched.
void read_curate_state(Bytes bytes) {
  static const EncoderSource encoder = open_encoder(seed("weights/resnet10").string());
  static const std::vector<std::byte> log = read_bytes(seed("repeats/pass"));
  static const std::vector<std::byte> picture = read_bytes(seed("jpeg/plain"));
  static const std::vector<std::string> pictures = seeds_pictures();
  const CurateConfig config = seeds_config();
  fs::remove_all(config.out);
  const fs::path beside = curate_inputs().put("beside", "not a picture of the pass");
  const fs::path inside = curate_inputs().put("out/curate.lock", "");
  curate_inputs().put("out/repeats.log", Bytes(log));
  for (const auto& file : pictures) curate_inputs().put("out/pictures/" + file, Bytes(picture));
  curate_inputs().put("out/state.safetensors", bytes);
  const auto require_untouched = [&] {
    if (!fs::exists(beside) || !fs::exists(inside)) throw std::logic_error("removed a file");
  };
  try {
    curate(config, *encoder.encoder);
  } catch (const Error&) {
    require_untouched();
    throw;
  }
  require_untouched();
}

// The log of a pass that kept the pictures 0, 1 and 2.
void read_repeats(Bytes bytes) {
  std::vector<Chosen> pictures(3);
  for (std::size_t i = 0; i < pictures.size(); ++i) pictures[i].kept.index = i;
  const auto log = curate_inputs().put("repeats.log", bytes);
  write_assignments(log, pictures, curate_inputs().path() / "assignments.csv");
}

}  // namespace riffle::fuzz
