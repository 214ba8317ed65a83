
#include "apps/riffle/commands.h"
#include "apps/riffle/print.h"

#include "riffle/base/text.h"

namespace riffle {
namespace {

// A command of the program with its path, "bench load"; the program itself has an empty one.
struct Node {
  std::string path;
  const CLI::App* app;
};

void collect(const CLI::App& app, const std::string& path, std::vector<Node>& nodes) {
  nodes.push_back({path, &app});
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    collect(*command, path.empty() ? command->get_name() : cat(path, ' ', command->get_name()),
            nodes);
  }
}

// Those that are for users.
std::vector<const CLI::Option*> options(const CLI::App& app) {
  return app.get_options([](const CLI::Option* option) { return !option->get_group().empty(); });
}

std::vector<std::string> flags(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : options(app)) {
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// Inside single quotes of both shells.
std::string quoted(const std::string& text) {
  std::string safe;
  for (const char c : text) safe += c == '\'' ? "'\\''" : std::string(1, c);
  return cat('\'', safe, '\'');
}

// Follows the words typed so far to the command they name, in the variable `command`.
std::string follow_words(const std::vector<Node>& nodes) {
  std::vector<std::string> known;
  for (const auto& node : nodes) {
    if (!node.path.empty()) known.push_back(quoted(node.path));
  }
  return cat("    case \"${command:+$command }$word\" in ", join(known, " | "),
             ") command=\"${command:+$command }$word\" ;; esac\n");
}

std::string bash_script(const std::vector<Node>& nodes) {
  std::string script =
      "# Completion of riffle for bash.\n"
      "_riffle() {\n"
      "  local command= word commands= options= current=${COMP_WORDS[COMP_CWORD]}\n"
      "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n" +
      follow_words(nodes) + "  done\n  case $command in\n";
  for (const auto& [path, app] : nodes) {
    std::vector<std::string> names;
    for (const CLI::App* command : app->get_subcommands(nullptr))
      names.push_back(command->get_name());
    script += cat("    ", quoted(path), ") commands=", quoted(join(names, " ")),
                  " options=", quoted(join(flags(*app), " ")), " ;;\n");
  }
  return script +
         "  esac\n"
         "  [[ $current == -* ]] && commands=$options\n"
         "  mapfile -t COMPREPLY < <(compgen -W \"$commands\" -- \"$current\")\n"
         "}\n"
         "complete -o default -F _riffle riffle\n";
}

// "name:what it is" for zsh's _describe.
std::string described(const std::string& name, const std::string& about) {
  std::string text;
  for (const char c : about) text += c == ':' ? "\\:" : std::string(1, c);
  return quoted(cat(name, ':', text.substr(0, text.find('\n'))));
}

std::string zsh_script(const std::vector<Node>& nodes) {
  std::string script =
      "#compdef riffle\n"
      "# Completion of riffle for zsh.\n"
      "_riffle() {\n"
      "  local command= word\n"
      "  local -a commands options\n"
      "  for word in \"${(@)words[2,CURRENT-1]}\"; do\n" +
      follow_words(nodes) + "  done\n  case $command in\n";
  for (const auto& [path, app] : nodes) {
    script += cat("    ", quoted(path), ")\n      commands=(");
    for (const CLI::App* command : app->get_subcommands(nullptr)) {
      script += cat("\n        ", described(command->get_name(), command->get_description()));
    }
    script += ")\n      options=(";
    for (const CLI::Option* option : options(*app)) {
      for (const auto& name : option->get_lnames()) {
        script += cat("\n        ", described("--" + name, option->get_description()));
      }
    }
    script += ")\n      ;;\n";
  }
  return script +
         "  esac\n"
         "  if [[ ${words[CURRENT]} == -* ]]; then\n"
         "    _describe -o option options\n"
         "  elif (( ${#commands} )); then\n"
         "    _describe command commands\n"
         "  else\n"
         "    _files\n"
         "  fi\n"
         "}\n"
         "if [[ ${funcstack[1]} == _riffle ]]; then _riffle \"$@\"; else compdef _riffle riffle; "
         "fi\n";
}

}  // namespace

void add_completion_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("completion", "Print a script that completes riffle's words in a shell");
  const auto shell = std::make_shared<std::string>();
  command->add_option("SHELL", *shell, "bash or zsh")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh"}));
  command->footer(
      "Example, for bash in this terminal and in all to come:\n"
      "  source <(riffle completion bash)\n"
      "  echo 'source <(riffle completion bash)' >> ~/.bashrc\n"
      "For zsh:\n"
      "  source <(riffle completion zsh)");
  command->callback([&app, shell] {
    std::vector<Node> nodes;
    collect(app, "", nodes);
    print_lines(*shell == "bash" ? bash_script(nodes) : zsh_script(nodes));
  });
}

}  // namespace riffle
