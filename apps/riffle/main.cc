// The program: finds the sub-command, and turns any failure into one clear line and an exit code.

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <exception>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "apps/riffle/commands.h"
#include "apps/riffle/help_format.h"
#include "apps/riffle/version.h"
#include <CLI/CLI.hpp>
#include <c10/util/Exception.h>

#include "riffle/base/error.h"
#include "riffle/base/log.h"
#include "riffle/base/memory.h"
#include "riffle/base/standard_streams.h"
#include "riffle/base/text.h"
#include "riffle/dist/ranks.h"
#include "riffle/image/jpeg.h"
#include "riffle/tensors/out_of_memory.h"

namespace riffle {
namespace {

constexpr int kFailed = 1;
constexpr int kBadUsage = 2;
constexpr const char* kNoMemory =
    "out of memory; a smaller --batch, --size or --capacity needs less";

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

int complain(const std::string& message, int exit_code) {
  finish_progress();
  // What all ranks complain of is said once: rank 0 ends the others before they can.
  if (launched_processes() > 1 && !is_first_process()) {
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
  std::cerr << cat("riffle: ", printable(message), '\n');
  abort_other_ranks(exit_code);
  return exit_code;
}

// CLI11 would only say that a command is missing.
void require_known_command(const CLI::App& app, int argc, char** argv) {
  const CLI::App* parent = &app;
  std::string path;  // "bench " of "bench load"
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "-q" || word == "--quiet") continue;
    const auto commands = parent->get_subcommands(nullptr);
    if (commands.empty() || word.starts_with('-')) return;
    const auto named = std::ranges::find(commands, word, &CLI::App::get_name);
    if (named == commands.end()) {
      std::vector<std::string> names;
      for (const CLI::App* command : commands) names.push_back(path + command->get_name());
      throw Error(unknown_name("command", path + word, names));
    }
    parent = *named;
    path += parent->get_name() + ' ';
  }
}

// CLI11 would name what follows a misspelt option too, and in another order.
void require_known_options(const CLI::App& app, int argc, char** argv) {
  const CLI::App* command = &app;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--") return;
    if (!argument.starts_with("--")) {
      const auto commands = command->get_subcommands(nullptr);
      const auto named = std::ranges::find(commands, argument, &CLI::App::get_name);
      if (named != commands.end()) command = *named;
      continue;
    }
    const std::string option = argument.substr(0, argument.find('='));
    if (command->get_option_no_throw(option) || app.get_option_no_throw(option)) continue;
    std::vector<std::string> names;
    for (const CLI::Option* known : command->get_options()) {
      if (known->get_group().empty()) continue;  // not for users
      for (const auto& name : known->get_lnames()) names.push_back("--" + name);
    }
    throw Error(cat("unknown option '", option, "'; did you mean '", nearest_name(option, names),
                    "'? (see riffle ", command->get_name(), " --help)"));
  }
}

// What writes to a closed pipe, or makes a file longer than the limit, gets an error. The signals
// would end a run without its last checkpoint.
void ignore_signals_about_files() {
  for (const int signal : {SIGPIPE, SIGXFSZ}) std::signal(signal, SIG_IGN);
}

// The commands whose work several ranks share. Of any other, each process would do all of it, into
// the same files.
constexpr std::array kSharedCommands = {"riffle train", "riffle resume", "riffle embed",
                                        "riffle probe", "riffle curate", "riffle bench ranks"};

void require_shared_command(const CLI::App& app) {
  if (launched_processes() == 1) return;
  std::string name = app.get_name();
  for (const CLI::App* at = &app; !at->get_subcommands().empty();) {
    at = at->get_subcommands().front();
    name += ' ' + at->get_name();
  }
  if (std::ranges::find(kSharedCommands, name) != kSharedCommands.end()) return;
  const std::vector<std::string> shared(kSharedCommands.begin(), kSharedCommands.end());
  throw Error(cat(name, " works in one process, and this is one of ", launched_processes(),
                  "; start it without mpirun or srun. Only ", join(shared, ", "),
                  " share their work"));
}

int run(int argc, char** argv) {
  CLI::App app("riffle learns visual representations from streams that never end.", "riffle");
  app.formatter(std::make_shared<HelpFormat>());  // sub-commands take it over
  app.set_version_flag("--version", version_text());
  app.require_subcommand(1);
  app.fallthrough();  // -q may follow the command
  app.footer("Example: riffle demo\nEvery command has --help with an example of its own.");
  bool quiet = false;
  app.add_flag("-q,--quiet", quiet, "Print warnings and errors only, no progress");
  app.parse_complete_callback([&] {
    if (quiet || !is_first_process()) set_log_level(LogLevel::warnings);
    require_jpeg();  // not after hours of training
    require_shared_command(app);
  });
  add_demo_command(app);
  add_train_command(app);
  add_resume_command(app);
  add_probe_command(app);
  add_stream_command(app);
  add_buffer_command(app);
  add_embed_command(app);
  add_curate_command(app);
  add_export_command(app);
  add_report_command(app);
  add_watch_command(app);
  add_study_command(app);
  add_config_command(app);
  add_bench_command(app);
  add_completion_command(app);

  require_known_command(app, argc, argv);
  require_known_options(app, argc, argv);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help and --version
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    std::string why = first_line(error.what());
    const std::size_t times = why.find(": At Most 1 required");
    if (times != why.npos) why.replace(times, why.npos, " is given more than once");
    return complain(why + " (see --help)", kBadUsage);
  }
  return 0;
}

}  // namespace
}  // namespace riffle

int main(int argc, char** argv) {
  riffle::open_standard_streams();
  riffle::ignore_signals_about_files();
  riffle::keep_freed_memory();
  riffle::let_gpu_memory_grow();
  try {
    return riffle::run(argc, argv);
  } catch (const riffle::Error& error) {
    return riffle::complain(error.what(), error.exit_code());
  } catch (const c10::Error& error) {
    if (riffle::is_out_of_memory(error))
      return riffle::complain(riffle::kNoMemory, riffle::kFailed);
    return riffle::complain(
        "LibTorch failed: " + riffle::first_line(error.what_without_backtrace()), riffle::kFailed);
  } catch (const std::bad_alloc&) {
    return riffle::complain(riffle::kNoMemory, riffle::kFailed);
  } catch (const std::exception& error) {
    return riffle::complain("unexpected failure: " + riffle::first_line(error.what()),
                            riffle::kFailed);
  }
}
