// The sub-commands of riffle: each adds itself to the program, with its options, help and example.
//
// A command throws riffle::Error; main() turns that into one line on standard error and the exit
// code.
#pragma once

#include <cstdint>

#include <CLI/CLI.hpp>

namespace riffle {

// The most samples that a flag asks for.
inline constexpr std::int64_t kMostSamples = 1'000'000'000'000;

void add_demo_command(CLI::App& app);
void add_train_command(CLI::App& app);
void add_resume_command(CLI::App& app);
void add_probe_command(CLI::App& app);
void add_stream_command(CLI::App& app);
void add_buffer_command(CLI::App& app);
void add_embed_command(CLI::App& app);
void add_curate_command(CLI::App& app);
void add_export_command(CLI::App& app);
void add_report_command(CLI::App& app);
void add_watch_command(CLI::App& app);
void add_study_command(CLI::App& app);
void add_config_command(CLI::App& app);
void add_completion_command(CLI::App& app);
void add_bench_command(CLI::App& app);

// Parts of `riffle bench`.
void add_bench_load(CLI::App& bench);
void add_bench_step(CLI::App& bench);
void add_bench_pipeline(CLI::App& bench);
void add_bench_minred(CLI::App& bench);
void add_bench_ranks(CLI::App& bench);

}  // namespace riffle
