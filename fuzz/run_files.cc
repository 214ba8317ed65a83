// Files of weights, the files of a run folder, configurations and studies.

#include <cstring>
#include <filesystem>

#include "fuzz/input_folder.h"
#include "fuzz/targets.h"

#include "riffle/base/checksum.h"
#include "riffle/base/file.h"
#include "riffle/base/text.h"
#include "riffle/run/checkpoint.h"
#include "riffle/run/manifest.h"
#include "riffle/run/metrics.h"
#include "riffle/run/metrics_history.h"
#include "riffle/run/model_source.h"
#include "riffle/run/picture_log.h"
#include "riffle/run/probe_record.h"
#include "riffle/run/saved_buffer.h"
#include "riffle/run/status_file.h"
#include "riffle/study/run_result.h"
#include "riffle/study/study_file.h"
#include "riffle/tensors/safetensors.h"
#include "riffle/tensors/torch_file.h"
#include "riffle/watch/sampled_metrics.h"

namespace riffle::fuzz {
namespace {

const InputFolder& run_inputs() {
  static const InputFolder folder;
  return folder;
}

// The run that the seeds are of (make_seeds.py), without a checkpoint.
const RunFolder& run_folder() {
  static const RunFolder folder = [] {
    const auto corpus = std::filesystem::path(RIFFLE_SOURCE_DIR) / "fuzz/corpus";
    run_inputs().put("run/config.yaml", Bytes(read_bytes(corpus / "config/whole")));
    return RunFolder::open(run_inputs().path() / "run");
  }();
  return folder;
}

}  // namespace

void read_tensors(Bytes bytes) { read_safetensors(run_inputs().put("tensors.safetensors", bytes)); }

void read_torch_tensors(Bytes bytes) { read_torch_file(run_inputs().put("tensors.pth", bytes)); }

void read_weights(Bytes bytes) {
  open_encoder(run_inputs().put("weights.safetensors", bytes).string());
}

// As it is, and as content whose checksum is right.
void read_a_manifest(Bytes bytes) {
  may_refuse([&] { read_manifest(run_inputs().put("raw.json", bytes)); });
  const std::string text = text_of(bytes);
  const std::string line = text.substr(0, text.find('\n'));
  const auto signed_text = cat(line, '\n', checksum_text(checksum(line)), '\n');
  read_manifest(run_inputs().put("signed.json", signed_text));
}

// The state file of a checkpoint whose manifest is right, as far as a network gets that continues.
void read_state_file(Bytes bytes) {
  const RunFolder& folder = run_folder();
  const std::string name = RunFolder::checkpoint_name(4, 0);
  const auto state = run_inputs().put("run/checkpoints/update-000000004.safetensors", bytes);
  write_manifest(folder.manifest(name), {.update = 4,
                                         .samples_seen = 16,
                                         .file = state.filename().string(),
                                         .bytes = bytes.size(),
                                         .checksum = checksum_text(checksum(bytes)),
                                         .segments = {1}});
  may_refuse([&] { SavedBuffer(folder).features(); });
  const Checkpoint checkpoint = read_checkpoint(folder, name);
  const Config config = folder.config();
  const auto stream = open_stream(config.stream);
  Learner(config.learner, *stream).restore(checkpoint.state);
}

// Records of six bytes. The first 48 bytes say where three pictures are claimed to be, the rest is
// the segment; then again with the checksums of its records put right.
void read_picture_log(Bytes bytes) {
  constexpr std::size_t kPlaces = 48, kHeader = 32, kRecord = 16 + 6;
  if (bytes.size() < kPlaces) return;
  std::vector<PicturePlace> places(3);
  std::memcpy(places.data(), bytes.data(), kPlaces);
  std::vector<std::byte> segment(bytes.begin() + kPlaces, bytes.end());
  const std::vector<Slot> slots = {0, 1, 2};
  const std::vector<std::uint64_t> arrivals = {0, 1, 2};
  const auto folder = run_inputs().path() / "log";
  const auto read = [&] {
    run_inputs().put("log/pictures-000000001.bin", Bytes(segment));
    PictureLog log(folder, 4, 6);
    may_refuse([&] { log.newest_arrivals(4); });
    may_refuse([&] { log.adopt(slots, arrivals, places); });
    std::vector<std::size_t> damaged;
    log.adopt(slots, arrivals, places, &damaged);
    log.take_lost();
  };
  may_refuse(read);
  for (std::size_t at = kHeader; at + kRecord <= segment.size(); at += kRecord) {
    Checksum sum;
    sum.add(Bytes(segment).subspan(at, 8));
    sum.add(Bytes(segment).subspan(at + 16, 6));
    const std::uint64_t value = sum.value();
    std::memcpy(segment.data() + at + 8, &value, sizeof(value));
  }
  read();
}

void read_metrics_file(Bytes bytes) {
  const auto path = run_inputs().put("metrics.jsonl", bytes);
  const auto history = read_metrics(path);
  for (const auto& [key, curve] : history.curves) {
    history.last(key);
    history.late_mean(key);
  }
  may_refuse([&] { newest_update(path); });
  sample_metrics(path, 5);
  newest_metrics(path);
  MetricsFile file(path, {}, 5);
  file.write(6, {{"loss", 1}});
}

void read_status_and_probes(Bytes bytes) {
  run_inputs().put("run/status.json", bytes);
  read_status(run_folder());
  run_inputs().put("run/probes.jsonl", bytes);
  read_probes(run_folder());
}

void read_run_result(Bytes bytes) { read_result(run_inputs().put("result.json", bytes)); }

void read_config(Bytes bytes) {
  ConfigBuilder builder;
  builder.read_yaml(run_inputs().put("config.yaml", bytes));
  const std::string written = config_yaml(builder.build());
  ConfigBuilder again;
  again.read_yaml_text(written, "what riffle wrote");
  if (config_yaml(again.build()) != written) throw std::logic_error("reads something else back");
}

void read_study(Bytes bytes) {
  expand(load_study(run_inputs().put("study.yaml", bytes), "smoke", "data"));
}

}  // namespace riffle::fuzz
