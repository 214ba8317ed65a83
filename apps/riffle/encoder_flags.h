// The encoder that a command works with, on the command line.
#pragma once

#include <cstdint>
#include <string>

#include <CLI/CLI.hpp>

#include "riffle/run/model_source.h"
#include "riffle/train/updater.h"

namespace riffle {

struct EncoderFlags {
  std::string run;
  std::string checkpoint;
  std::string device;
  std::int64_t size = 0;

  // Flags write to this: it must outlive the command. Where the encoder comes from:
  void add_source_to(CLI::App& command) {
    command.add_option("RUN", run, "Run folder, or a safetensors file with an encoder")->required();
    command
        .add_option(
            "--checkpoint", checkpoint,
            "Checkpoint, such as update-000000200, or its file; the latest of the run without")
        ->option_text("FILE");
  }
  // How pictures are shown to it:
  void add_use_to(CLI::App& command) {
    command.add_option("--device", device, "cpu or cuda; that of the run without")
        ->option_text("NAME");
    command.add_option("--size", size, "Side of the pictures, px; that of the run without")
        ->check(CLI::Range(1, 4096))
        ->option_text("PX");
  }

  ModelSource open() const { return open_model(run, checkpoint); }
  // Throws Error for a device that is not there.
  at::Device device_for(const ModelSource& source) const {
    return open_device(device.empty() ? source.device : device);
  }
};

}  // namespace riffle
