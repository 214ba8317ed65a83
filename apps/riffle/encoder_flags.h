// Command-line flags that name the encoder a command works with.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include <ATen/Parallel.h>
#include <CLI/CLI.hpp>

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/dist/ranks.h"
#include "riffle/run/model_source.h"
#include "riffle/run/run_folder.h"
#include "riffle/stream/stream.h"
#include "riffle/train/updater.h"

namespace riffle {

struct EncoderFlags {
  std::string run;
  std::string checkpoint;
  std::string device;
  std::int64_t size = 0;

  // Adds the flags that say where the encoder comes from. Flags write to this: it must outlive the
  // command.
  void add_source_to(CLI::App& command) {
    command.add_option("RUN", run, "Run folder, or a safetensors or .pth file with an encoder")
        ->required();
    command
        .add_option("--checkpoint", checkpoint,
                    "Checkpoint, such as update-000000200, or its file; default: the newest")
        ->option_text("FILE");
  }
  // Adds the flags that say how pictures are shown to it.
  void add_use_to(CLI::App& command) {
    command.add_option("--device", device, "cpu, cuda or cuda:N; default: the run's")
        ->option_text("NAME");
    command.add_option("--size", size, "Side of the pictures in px; default: the run's")
        ->check(CLI::Range(1, 4096))
        ->option_text("PX");
  }

  // Several ranks open the same checkpoint.
  ModelSource open(Ranks& ranks = one_rank()) const {
    return open_model(run, agreed_checkpoint(ranks));
  }
  EncoderSource open_any_encoder(Ranks& ranks) const {
    return open_encoder(run, agreed_checkpoint(ranks));
  }
  // Throws Error if the device is not available.
  template <typename Source>
  at::Device device_for(const Source& source) const {
    return open_device(device.empty() ? source.device : device);
  }

 private:
  // A run that still trains may have a newer checkpoint for one rank than for another: all take the
  // first one's.
  std::string agreed_checkpoint(Ranks& ranks) const {
    if (ranks.alone() || !checkpoint.empty()) return checkpoint;
    std::optional<std::filesystem::path> newest;
    if (ranks.first() && RunFolder::is_run(run)) newest = RunFolder::open(run).latest_checkpoint();
    return ranks.from_first(newest ? newest->filename().string() : "");
  }
};

// Returns the ranks that share a command's encoding. Ranks on one machine divide its cores.
inline Ranks& join_ranks() {
  Ranks& ranks = ranks_of_process();
  if (!ranks.alone()) {
    at::set_num_threads(std::min(at::get_num_threads(), static_cast<int>(threads_per_rank(ranks))));
  }
  return ranks;
}

// Throws Error if the stream never ends and `samples` (0: all) sets no end either.
inline void require_end(const Stream& stream, const std::string& uri, std::int64_t samples) {
  if (samples > 0 || !stream.endless()) return;
  throw Error(cat(uri, " never ends; say how much of it to read: --samples N"));
}

}  // namespace riffle
