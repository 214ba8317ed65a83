// What others send over a network, and where lists of URLs may lead.

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <thread>

#include "fuzz/input_folder.h"
#include "fuzz/targets.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "riffle/stream/urls/address.h"
#include "riffle/watch/server.h"

namespace riffle::fuzz {
namespace {

constexpr const char* kSecret = "what nobody may know who has not the right to";

// A server of a run folder with that name.
class Server {
 public:
  explicit Server(const std::string& token)
      : server_(ServerOptions{.folder = runs(), .token = token}) {
    thread_ = std::thread([this] { server_.serve(); });
  }
  ~Server() {
    server_.stop();
    thread_.join();
  }
  Server(const Server&) = delete;

  bool tells_all_to(Bytes request) const {
    return answer(request).find(kSecret) != std::string::npos;
  }

 private:
  // libFuzzer's timer interrupts calls that wait.
  int connected() const {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(server_.port()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const auto* const general = reinterpret_cast<const sockaddr*>(&address);
    for (;;) {
      const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
      // Closed without a trace: hundreds of connections a second would use up all ports.
      const linger at_once{.l_onoff = 1, .l_linger = 0};
      ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
      if (::connect(socket, general, sizeof(address)) == 0) return socket;
      const int error = errno;
      ::close(socket);
      if (error != EINTR) {
        throw std::logic_error(std::string("no connection: ") + std::strerror(error));
      }
    }
  }
  std::string answer(Bytes request) const {
    const int socket = connected();
    [[maybe_unused]] const auto sent = ::send(socket, request.data(), request.size(), MSG_NOSIGNAL);
    ::shutdown(socket, SHUT_WR);
    std::string all;
    char part[4096];
    for (ssize_t got;
         (got = ::recv(socket, part, sizeof(part), 0)) > 0 || (got < 0 && errno == EINTR);) {
      all.append(part, static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    }
    ::close(socket);
    return all;
  }
  std::filesystem::path runs() const {
    inputs_.put(std::string("runs/") + kSecret + "/config.yaml", "stream: {uri: 'synthetic:'}\n");
    return inputs_.path() / "runs";
  }

  InputFolder inputs_;
  WatchServer server_;
  std::thread thread_;
};

}  // namespace

// To a server that asks for a token, which no input has, and to one that asks to be called by a
// name of this machine.
void read_http_request(Bytes bytes) {
  static const Server with_token(random_token()), without("");
  if (with_token.tells_all_to(bytes)) throw std::logic_error("tells about runs without the token");
  const std::string request = text_of(bytes);
  const auto names = [&](const char* name) { return request.find(name) != std::string::npos; };
  const bool by_own_name = names("127.0.0.1") || names("localhost") || names("[::1]");
  if (without.tells_all_to(bytes) && !by_own_name) {
    throw std::logic_error("tells about runs by the name of another machine");
  }
}

// As a host that a URL names, then as the address that a name was looked up as: sixteen bytes of
// IPv6, or four of IPv4. The same address in words must get the same answer.
void read_address(Bytes bytes) {
  is_private_host(text_of(bytes));
  const auto agree = [](int family, const void* raw, const sockaddr& address) {
    char words[INET6_ADDRSTRLEN] = {};
    ::inet_ntop(family, raw, words, sizeof(words));
    const std::string host = family == AF_INET6 ? std::string("[") + words + "]" : words;
    if (is_private_host(host) == is_public_address(address)) {
      throw std::logic_error("an address in words is not the same address");
    }
  };
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  if (bytes.size() == sizeof(v6.sin6_addr)) {
    v6.sin6_family = AF_INET6;
    std::memcpy(&v6.sin6_addr, bytes.data(), sizeof(v6.sin6_addr));
    agree(AF_INET6, &v6.sin6_addr, reinterpret_cast<const sockaddr&>(v6));
  } else if (bytes.size() == sizeof(v4.sin_addr)) {
    v4.sin_family = AF_INET;
    std::memcpy(&v4.sin_addr, bytes.data(), sizeof(v4.sin_addr));
    agree(AF_INET, &v4.sin_addr, reinterpret_cast<const sockaddr&>(v4));
  }
}

}  // namespace riffle::fuzz
