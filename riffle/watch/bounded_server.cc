#include "riffle/watch/bounded_server.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <string_view>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "riffle/base/clock.h"

namespace riffle {
namespace {

void listen_alone(socket_t socket) {
  // The library's default would let a second server share the port.
  const int yes = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
}

}  // namespace

// A client's connection. Used by its thread; close() by others, too.
class BoundedServer::Connection : public httplib::Stream {
 public:
  explicit Connection(socket_t socket) : socket_(socket) {}

  Clock::time_point begun() const { return begun_; }
  // Returns whether it is the client whom the server waits for.
  bool waits() const { return !closed_ && phase_ != Phase::preparing; }
  // Ends the wait for the client.
  void close() {
    closed_ = true;
    ::shutdown(socket_, SHUT_RDWR);
  }

  bool is_readable() const override { return begin_ < end_ || ready(POLLIN, kAskSeconds); }
  bool is_writable() const override { return ready(POLLOUT, kAnswerSeconds); }

  ssize_t read(char* to, std::size_t size) override {
    if (begin_ == end_) {
      if (!ready(POLLIN, kAskSeconds)) return -1;
      const ssize_t got = ::recv(socket_, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
      if (got <= 0) return got;
      begin_ = 0;
      end_ = static_cast<std::size_t>(got);
      note_end_of_request();
    }
    const std::size_t count = std::min(size, end_ - begin_);
    std::memcpy(to, buffer_.data() + begin_, count);
    begin_ += count;
    return static_cast<ssize_t>(count);
  }

  ssize_t write(const char* from, std::size_t size) override {
    if (phase_ != Phase::answering) {
      answering_ = Clock::now();
      phase_ = Phase::answering;
    }
    if (!ready(POLLOUT, kAnswerSeconds)) return -1;
    return ::send(socket_, from, size, MSG_DONTWAIT | MSG_NOSIGNAL);
  }

  // Nobody asks for them.
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return socket_; }

 private:
  enum class Phase { asking, preparing, answering };

  // Waits until `seconds` after this phase began.
  bool ready(short event, int seconds) const {
    const auto since = phase_ == Phase::answering ? answering_ : begun_;
    const double left = seconds - seconds_since(since);
    if (left <= 0) return false;
    pollfd wanted{socket_, event, 0};
    return ::poll(&wanted, 1, static_cast<int>(left * 1000)) == 1;
  }

  // What is answered here has no body: a request ends with an empty line.
  void note_end_of_request() {
    constexpr std::string_view kEnd = "\r\n\r\n";
    last_.append(buffer_.data(), end_);
    if (last_.ends_with(kEnd)) phase_ = Phase::preparing;
    if (last_.size() > kEnd.size()) last_.erase(0, last_.size() - kEnd.size());
  }

  const socket_t socket_;
  const Clock::time_point begun_ = Clock::now();
  Clock::time_point answering_;
  std::atomic<Phase> phase_ = Phase::asking;
  std::atomic<bool> closed_ = false;
  std::array<char, 4096> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // what of `buffer_` is not read yet
  std::string last_;                 // characters of the request
};

class BoundedServer::Threads : public httplib::TaskQueue {
 public:
  explicit Threads(BoundedServer& server) : server_(server), pool_(kConnections) {}

  void enqueue(std::function<void()> serve) override {
    if (++held_ > kConnections) server_.make_room();
    pool_.enqueue([this, serve = std::move(serve)] {
      serve();
      --held_;
    });
  }
  void shutdown() override { pool_.shutdown(); }

 private:
  BoundedServer& server_;
  std::atomic<std::size_t> held_ = 0;  // connections, those without a thread yet included
  httplib::ThreadPool pool_;
};

BoundedServer::BoundedServer() {
  new_task_queue = [this] { return new Threads(*this); };
  set_keep_alive_max_count(1);
  set_payload_max_length(0);
  set_socket_options(listen_alone);
}

void BoundedServer::let_many_wait() {
  constexpr int kWaiting = 1024;
  ::listen(svr_sock_, kWaiting);
}

bool BoundedServer::process_and_close_socket(socket_t socket) {
  Connection connection(socket);
  {
    const std::lock_guard lock(mutex_);
    connections_.insert(&connection);
  }
  bool closed = false;
  const bool done = process_request(connection, /*close_connection=*/true, closed, nullptr);
  {
    const std::lock_guard lock(mutex_);
    connections_.erase(&connection);
  }
  ::shutdown(socket, SHUT_RDWR);
  ::close(socket);
  return done;
}

void BoundedServer::make_room() {
  const std::lock_guard lock(mutex_);
  Connection* oldest = nullptr;
  for (Connection* connection : connections_) {
    if (!connection->waits()) continue;
    if (oldest == nullptr || connection->begun() < oldest->begun()) oldest = connection;
  }
  if (oldest != nullptr) oldest->close();
}

}  // namespace riffle
