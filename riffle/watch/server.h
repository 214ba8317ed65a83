// The page, served over HTTP to browsers on this machine or, with a token, on others.
//
// Reads run folders and nothing else; asks no other address. What it serves: the page itself, and
// under /data/ what Watcher says. With a token every request for data must carry it
// ("Authorization: Bearer TOKEN"); the page takes it from the part of its address after the #,
// which a browser keeps to itself. Without one, only requests to this machine's own names are
// answered, so that no other site's page can read the data through a name that leads here.
//
// Slow and malformed clients cannot keep others out (bounded_server.h).
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "riffle/base/library.h"

namespace riffle {

struct ServerOptions {
  std::filesystem::path folder = {};
  // The address to listen on.
  std::string host = "127.0.0.1";
  // 0: any that is free.
  int port = 0;
  // Empty: none is asked for. Requires a host of this machine alone.
  std::string token = {};
};

class WatchServer {
 public:
  // Takes the port. Throws Error if it is taken, or if this build has no server.
  explicit WatchServer(const ServerOptions& options);
  ~WatchServer();

  int port() const;
  // Serves until stop() is called. Throws Error if that cannot be done.
  void serve();
  // Safe from any thread, also before serve().
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Returns what the room is built on.
std::vector<Library> watch_libraries();

// Returns 32 random hexadecimal digits.
std::string random_token();

}  // namespace riffle
