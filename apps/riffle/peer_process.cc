#include "apps/riffle/peer_process.h"

#include <csignal>
#include <cstring>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "riffle/base/error.h"
#include "riffle/base/text.h"

extern char** environ;

namespace riffle {

PeerProcess::PeerProcess(const std::vector<std::string>& command) : name_(command.at(0)) {
  // A peer that died is found out by its missing answer, not by a signal.
  std::signal(SIGPIPE, SIG_IGN);
  int input[2];
  int output[2];
  // Close-on-exec: a peer started later must not hold this one's input open.
  if (pipe2(input, O_CLOEXEC) != 0 || pipe2(output, O_CLOEXEC) != 0) {
    throw Error(cat("cannot make a pipe: ", std::strerror(errno)), ErrorKind::failure);
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
  std::vector<std::string> words = command;
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const int error = posix_spawn(&pid_, name_.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(input[0]);
  close(output[1]);
  to_ = fdopen(input[1], "w");
  from_ = fdopen(output[0], "r");
  if (error != 0) {
    std::fclose(to_);
    std::fclose(from_);
    throw Error(cat("cannot start ", name_, ": ", std::strerror(error)), ErrorKind::failure);
  }
}

PeerProcess::~PeerProcess() {
  std::fclose(to_);
  std::fclose(from_);
  int status = 0;
  waitpid(pid_, &status, 0);
}

std::string PeerProcess::read_line() {
  std::string line;
  for (int c = std::fgetc(from_); c != '\n'; c = std::fgetc(from_)) {
    if (c == EOF) throw Error(cat(name_, " ended before it answered"), ErrorKind::failure);
    line.push_back(static_cast<char>(c));
  }
  return line;
}

void PeerProcess::write_line(const std::string& line) {
  std::fputs((line + '\n').c_str(), to_);
  std::fflush(to_);
}

}  // namespace riffle
