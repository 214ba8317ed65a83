// Another program to measure beside ours, spoken to line by line so that both can take turns in one
// run.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include <sys/types.h>

namespace riffle {

// Starts the program at once. Not thread-safe.
class PeerProcess {
 public:
  // command[0] is the path of the program. Throws Error when it cannot be started.
  explicit PeerProcess(const std::vector<std::string>& command);
  // Closes its input and waits for it to end.
  ~PeerProcess();
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;

  // The next line it prints. Throws Error (kind failure) when it ended instead.
  std::string read_line();
  void write_line(const std::string& line);

 private:
  std::string name_;
  pid_t pid_ = -1;
  std::FILE* from_ = nullptr;
  std::FILE* to_ = nullptr;
};

}  // namespace riffle
