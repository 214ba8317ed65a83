// Another program, started by this one and spoken to line by line through its standard input and
// output.
//
// The program has a process group of its own, so that Ctrl-C in a terminal reaches this process
// alone. Close-on-exec throughout: one child does not hold the pipes of another open. Not
// thread-safe.
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

namespace riffle {

// Where the lines that a child prints to standard error go.
enum class ChildErrors { inherited, piped };

class ChildProcess {
 public:
  // Starts the program command[0] with the other words as arguments, in this process's environment
  // but for the variables in `without`. Throws Error if it cannot be started.
  explicit ChildProcess(const std::vector<std::string>& command,
                        ChildErrors errors = ChildErrors::inherited,
                        const std::vector<std::string>& without = {});
  // Closes its input and waits for it to end.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Sends a line. A child that has ended does not receive it, and never answers.
  void write_line(const std::string& line);
  // Tells it that no line will follow.
  void close_input();
  // Returns the next line that it prints, waiting for it. Throws Error (kind failure) if the child
  // ended instead.
  std::string read_line();

  // Return the lines that are there already, without waiting.
  std::vector<std::string> lines();
  std::vector<std::string> error_lines();
  // To wait for lines with poll(2). -1: closed, or not piped.
  int output() const { return output_.descriptor; }
  int errors() const { return errors_.descriptor; }

  void signal(int number) const;
  // Returns whether it has closed its standard output, which a program does when it ends.
  bool ended() const { return output_.descriptor < 0; }
  // Waits for it and says how it ended: "exit code 3", "signal 9 (Killed)".
  std::string wait();

 private:
  // The reading end of a pipe, and what came after the last whole line.
  struct Pipe {
    int descriptor = -1;
    std::string rest;

    // Reads what is there, or waits for something. Closes at the end.
    void read(bool wait);
    std::vector<std::string> take_lines();
    void close();
  };

  std::string name_;
  pid_t pid_ = -1;
  int input_ = -1;
  Pipe output_;
  Pipe errors_;
  std::vector<std::string> read_ahead_;  // lines of output_ that read_line() has yet to return
};

}  // namespace riffle
