// For tests: a small HTTP server on the loopback interface.
//
// A thread per connection, one request per connection unless the handler reads more. A handler may
// write anything, slowly, forever or not at all: write() and pause() say when to give up. The
// destructor ends all handlers. Thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace riffle {

class LoopbackServer {
 public:
  // A connection on which a request was read, over HTTP or a protocol with the same requests.
  class Exchange {
   public:
    const std::string& target() const { return target_; }    // as the request names it
    const std::string& request() const { return request_; }  // up to its empty line
    // Waits for another request without a body. Returns false if the peer has gone or the server
    // ends.
    bool read_request();

    // Return false if the peer has gone or the server ends.
    bool write(std::string_view bytes);
    bool write(std::span<const std::byte> bytes);
    // Writes the status line and headers; without a length the body lasts until the connection is
    // closed.
    bool write_head(int status, const std::string& headers = "");
    void reply(int status, std::string_view body, const std::string& headers = "");
    // Waits for this time. Returns false, at once, if the server ends.
    bool pause(std::chrono::milliseconds time);

   private:
    friend class LoopbackServer;
    Exchange(LoopbackServer& server, int socket) : server_(server), socket_(socket) {}
    LoopbackServer& server_;
    int socket_;
    std::string request_, target_;
  };
  using Handler = std::function<void(Exchange&)>;

  LoopbackServer();
  ~LoopbackServer();
  LoopbackServer(const LoopbackServer&) = delete;
  LoopbackServer& operator=(const LoopbackServer&) = delete;

  // Answers requests for a whole target ("/1.png"). Targets without a route get a 404.
  void route(const std::string& target, Handler handler);
  void serve(const std::string& target, std::span<const std::byte> body);

  int port() const { return port_; }
  std::string url(const std::string& target) const;  // "http://127.0.0.1:PORT/target"

  int requests(const std::string& target) const;

 private:
  struct Connection {
    int socket;
    std::thread thread;
  };

  void accept_all();
  void answer(int socket);

  int listener_ = -1;
  int port_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable ends_;
  bool ending_ = false;
  std::map<std::string, Handler> routes_;
  std::map<std::string, int> requests_;
  std::vector<Connection> connections_;
  std::thread acceptor_;
};

}  // namespace riffle
