// An HTTP server that clients cannot keep busy by saying or taking little.
//
// Holds at most kConnections connections at once, each with a thread. A request must be whole
// within kAskSeconds of its connection, and its answer taken within kAnswerSeconds, however little
// at a time a client sends or reads. When all connections are held and one more client comes, the
// oldest that still sends its request or takes its answer is closed to make room. A connection
// carries one request.
#pragma once

#include <functional>
#include <mutex>
#include <set>

#include <httplib.h>

namespace riffle {

class BoundedServer : public httplib::Server {
 public:
  static constexpr std::size_t kConnections = 256;
  static constexpr int kAskSeconds = 2;
  static constexpr int kAnswerSeconds = 20;

  BoundedServer();

  // Lets more clients wait to be taken than the library does, which makes a sixth one try again
  // after a second. To be called once a port is bound.
  void let_many_wait();

 private:
  class Connection;
  class Threads;

  bool process_and_close_socket(socket_t socket) override;
  void make_room();

  std::mutex mutex_;
  std::set<Connection*> connections_;  // those with a thread
};

}  // namespace riffle
