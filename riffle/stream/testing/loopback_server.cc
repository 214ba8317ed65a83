#include "riffle/stream/testing/loopback_server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "riffle/base/error.h"
#include "riffle/base/text.h"

namespace riffle {

bool LoopbackServer::Exchange::read_request() {
  request_.clear();
  while (!request_.ends_with("\r\n\r\n")) {
    char buffer[4096];
    const auto count = ::recv(socket_, buffer, sizeof(buffer), 0);
    if (count <= 0) break;
    request_.append(buffer, static_cast<std::size_t>(count));
  }
  const auto words = split(request_.substr(0, request_.find("\r\n")), ' ');
  target_ = words.size() == 3 ? words[1] : std::string();
  return request_.ends_with("\r\n\r\n");
}

bool LoopbackServer::Exchange::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

bool LoopbackServer::Exchange::write(std::span<const std::byte> bytes) {
  return write(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

bool LoopbackServer::Exchange::write_head(int status, const std::string& headers) {
  return write(cat("HTTP/1.1 ", status, " as told\r\nConnection: close\r\n", headers, "\r\n"));
}

void LoopbackServer::Exchange::reply(int status, std::string_view body,
                                     const std::string& headers) {
  write_head(status, cat("Content-Length: ", body.size(), "\r\n", headers)) && write(body);
}

bool LoopbackServer::Exchange::pause(std::chrono::milliseconds time) {
  std::unique_lock lock(server_.mutex_);
  return !server_.ends_.wait_for(lock, time, [&] { return server_.ending_; });
}

LoopbackServer::LoopbackServer() {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener_, any, size) != 0 || ::listen(listener_, 128) != 0 ||
      ::getsockname(listener_, any, &size) != 0) {
    throw Error("cannot listen on the loopback interface", ErrorKind::failure);
  }
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { accept_all(); });
}

LoopbackServer::~LoopbackServer() {
  ::shutdown(listener_, SHUT_RDWR);
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    for (const auto& connection : connections_) ::shutdown(connection.socket, SHUT_RDWR);
  }
  ends_.notify_all();
  acceptor_.join();
  for (auto& connection : connections_) {
    connection.thread.join();
    ::close(connection.socket);
  }
  ::close(listener_);
}

void LoopbackServer::route(const std::string& target, Handler handler) {
  const std::lock_guard lock(mutex_);
  routes_[target] = std::move(handler);
}

void LoopbackServer::serve(const std::string& target, std::span<const std::byte> body) {
  const std::string text(reinterpret_cast<const char*>(body.data()), body.size());
  route(target, [text](Exchange& exchange) { exchange.reply(200, text); });
}

std::string LoopbackServer::url(const std::string& target) const {
  return cat("http://127.0.0.1:", port_, target);
}

int LoopbackServer::requests(const std::string& target) const {
  const std::lock_guard lock(mutex_);
  const auto found = requests_.find(target);
  return found == requests_.end() ? 0 : found->second;
}

void LoopbackServer::accept_all() {
  while (true) {
    const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    const std::lock_guard lock(mutex_);
    if (ending_) {
      if (socket >= 0) ::close(socket);
      return;
    }
    // A socket is closed only at the end: its number must not be given to another before.
    if (socket >= 0) connections_.push_back({socket, std::thread([=, this] { answer(socket); })});
  }
}

void LoopbackServer::answer(int socket) {
  Exchange exchange(*this, socket);
  exchange.read_request();
  Handler handler = [](Exchange& unknown) { unknown.reply(404, "not here"); };
  {
    const std::lock_guard lock(mutex_);
    ++requests_[exchange.target_];
    const auto found = routes_.find(exchange.target_);
    if (found != routes_.end()) handler = found->second;
  }
  handler(exchange);
  ::shutdown(socket, SHUT_WR);
}

}  // namespace riffle
