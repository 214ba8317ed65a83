#include <cstdlib>
#include <iostream>
#include <thread>

#include "apps/riffle/commands.h"
#include "apps/riffle/print.h"
#include <ATen/Parallel.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "riffle/base/log.h"
#include "riffle/base/text.h"
#include "riffle/watch/server.h"

namespace riffle {
namespace {

struct WatchOptions {
  ServerOptions server;
  std::string listen;
  bool with_input = false;
  bool json = false;
};

std::string host_in_url(const std::string& host) {
  if (host == "0.0.0.0" || host == "::") return "THIS-MACHINE";
  return host.find(':') == host.npos ? host : cat('[', host, ']');  // of IPv6
}

void run_watch(const WatchOptions& options) {
  // Runs on this machine come first.
  [[maybe_unused]] const int nice = ::nice(10);
  at::set_num_threads(1);
  ServerOptions server_options = options.server;
  if (!options.listen.empty()) {
    server_options.host = options.listen;
    server_options.token = random_token();
  }
  WatchServer server(server_options);
  const std::string url = cat("http://", host_in_url(server_options.host), ':', server.port(), '/',
                              server_options.token.empty() ? "" : "#token=" + server_options.token);
  log_info(cat("watching ", server_options.folder.string(), ": ", url, " (Ctrl-C ends the page, ",
               "not the runs)"));
  if (options.json) print_json_line(nlohmann::ordered_json{{"url", url}, {"port", server.port()}});
  if (options.with_input) {
    std::thread([] {
      while (std::cin.get() != EOF) {
      }
      std::_Exit(0);
    }).detach();
  }
  server.serve();
}

}  // namespace

void add_watch_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "watch", "A page in the browser about all runs in a folder, while they run and after");
  const auto options = std::make_shared<WatchOptions>();
  command->add_option("FOLDER", options->server.folder, "Folder with runs, or one run")->required();
  command->add_option("--port", options->server.port, "Port; 0: any that is free")
      ->check(CLI::Range(0, 65535))
      ->option_text("N [0]");
  command
      ->add_option("--listen", options->listen,
                   "Address of this machine to serve others on, such as 0.0.0.0; only who has the "
                   "token, which is a part of the page's address, is shown anything")
      ->option_text("ADDRESS");
  // For riffle train --watch.
  command->add_flag("--with-input", options->with_input, "End when standard input does")->group("");
  command->add_flag("--json", options->json, "Print the page's address as one JSON object");
  command->footer(
      "Example, all runs of a folder:\n"
      "  riffle watch runs");
  command->callback([options] { run_watch(*options); });
}

}  // namespace riffle
