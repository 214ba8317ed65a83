#include "riffle/watch/server.h"

#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "riffle/base/clock.h"
#include "riffle/run/testing/runs.h"

namespace riffle {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// A connection to a port of this machine.
class Client {
 public:
  explicit Client(int port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ =
        ::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    const timeval patience{20, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }
  Client(Client&& other) noexcept
      : socket_(std::exchange(other.socket_, -1)), connected_(other.connected_) {}
  ~Client() {
    if (socket_ >= 0) ::close(socket_);
  }
  bool connected() const { return connected_; }
  void say(const std::string& text) const {
    [[maybe_unused]] const auto sent = ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
  }
  // Waits for it for a while; the end of the connection is one, too.
  bool has_answer(std::chrono::milliseconds patience) const {
    pollfd wanted{socket_, POLLIN, 0};
    return ::poll(&wanted, 1, static_cast<int>(patience.count())) == 1;
  }
  std::string answer() const {
    std::string all;
    std::array<char, 4096> part;
    for (ssize_t got; (got = ::recv(socket_, part.data(), part.size(), 0)) > 0;) {
      all.append(part.data(), static_cast<std::size_t>(got));
    }
    return all;
  }

 private:
  int socket_;
  bool connected_ = false;
};

class WatchServerTest : public RunTest {
 protected:
  void start(const std::string& token = "") {
    fs::create_directories(folder_ / "runs");
    server_.emplace(ServerOptions{.folder = folder_ / "runs", .token = token});
    thread_ = std::thread([this] { server_->serve(); });
  }
  ~WatchServerTest() override {
    if (server_) server_->stop();
    if (thread_.joinable()) thread_.join();
  }
  std::string ask(const std::string& path, const std::string& host = "127.0.0.1",
                  const std::string& more = "") const {
    const Client client(server_->port());
    client.say(cat("GET ", path, " HTTP/1.1\r\nHost: ", host, "\r\n", more, "\r\n"));
    return client.answer();
  }

  std::optional<WatchServer> server_;
  std::thread thread_;
};

constexpr const char* kFine = "HTTP/1.1 200";

TEST_F(WatchServerTest, ServesThePageAndItsDataAndAsksNobodyElse) {
  RunFolder::create(folder_ / "runs/first", tiny("fifo"));
  start();
  const std::string page = ask("/");
  EXPECT_THAT(page, StartsWith(kFine));
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  for (const char* path : {"/", "/watch.js", "/watch.css"}) {
    std::string text = ask(path);
    EXPECT_THAT(text, StartsWith(kFine)) << path;
    // The name of SVG's vocabulary is not an address that is asked.
    const std::string svg = "http://www.w3.org/2000/svg";
    for (std::size_t at; (at = text.find(svg)) != std::string::npos;) text.erase(at, svg.size());
    EXPECT_THAT(text, testing::Not(HasSubstr("://"))) << path;
  }
  EXPECT_THAT(ask("/data/runs"), HasSubstr("\"name\":\"first\""));
  EXPECT_THAT(ask("/data/charts"), HasSubstr("Collapse gauge"));
}

TEST_F(WatchServerTest, NothingOutsideTheFolderCanBeRead) {
  start();
  write_atomically(folder_ / "secret", "what nobody may see");
  for (const char* path :
       {"/../secret", "/data/../../secret", "/%2e%2e/secret", "/data/kept?run=../../secret",
        "/data/curves?run=%2e%2e%2fsecret", "//secret", "/data/curves?run=/etc/passwd"}) {
    const std::string answer = ask(path);
    EXPECT_THAT(answer, testing::Not(StartsWith(kFine))) << path;
    EXPECT_THAT(answer, testing::Not(HasSubstr("nobody"))) << path;
  }
}

TEST_F(WatchServerTest, OtherSitesNamesAreRefused) {
  start();
  EXPECT_THAT(ask("/data/runs", "localhost:80"), StartsWith(kFine));
  EXPECT_THAT(ask("/data/runs", "evil.example"), StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(ask("/data/runs", ""), StartsWith("HTTP/1.1 403"));
}

TEST_F(WatchServerTest, WithATokenDataNeedIt) {
  const std::string token = random_token();
  EXPECT_EQ(token.size(), 32u);
  EXPECT_NE(token, random_token());
  start(token);
  EXPECT_THAT(ask("/", "any.name"), StartsWith(kFine));
  const auto with = [&](const std::string& given) {
    return ask("/data/runs", "any.name", cat("Authorization: Bearer ", given, "\r\n"));
  };
  EXPECT_THAT(with(token), StartsWith(kFine));
  for (const std::string& wrong :
       {std::string(), token.substr(1), token + "0", "0" + token.substr(1)}) {
    if (wrong == token) continue;
    EXPECT_THAT(with(wrong), StartsWith("HTTP/1.1 403")) << wrong;
  }
}

TEST_F(WatchServerTest, TwoHundredSlowOrMalformedClientsDoNotStopIt) {
  start();
  const std::vector<std::string> beginnings = {
      "G",
      "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ",
      "GET " + std::string(20'000, 'a'),
      "POST /data/runs HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n",
      std::string(64, '\0'),
      "\r\n\r\n\r\n",
      "GET / HTTP/9.9\r\n\r\n",
      ""};
  std::vector<Client> clients;
  for (int i = 0; i < 200; ++i) {
    clients.emplace_back(server_->port());
    ASSERT_TRUE(clients.back().connected());
    clients.back().say(beginnings[static_cast<std::size_t>(i) % beginnings.size()]);
  }
  const auto begun = Clock::now();
  for (int i = 0; i < 5; ++i) {
    for (const auto& client : clients) client.say("a");
    EXPECT_THAT(ask("/data/runs"), StartsWith(kFine));
  }
  EXPECT_LT(seconds_since(begun), 5);
}

TEST_F(WatchServerTest, MoreSlowClientsThanItHoldsDoNotKeepOthersOut) {
  start();
  const auto slow = [&] {
    Client client(server_->port());
    client.say("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ");
    return client;
  };
  std::vector<Client> clients;
  for (int i = 0; i < 300; ++i) clients.push_back(slow());
  const auto begun = Clock::now();
  for (int round = 0; round < 30; ++round) {
    for (const auto& client : clients) client.say("a");
    EXPECT_THAT(ask("/data/runs"), StartsWith(kFine));
    // Who was closed to make room comes again.
    for (int i = 0; i < 10; ++i) clients.push_back(slow());
  }
  EXPECT_LT(seconds_since(begun), 10);
}

TEST_F(WatchServerTest, ARequestThatTricklesIsCutOff) {
  start();
  const Client client(server_->port());
  client.say("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ");
  const auto begun = Clock::now();
  while (!client.has_answer(std::chrono::milliseconds(50)) && seconds_since(begun) < 10) {
    client.say("a");
  }
  EXPECT_THAT(client.answer(), testing::Not(StartsWith(kFine)));
  EXPECT_LT(seconds_since(begun), 10);
}

TEST_F(WatchServerTest, APortThatIsTakenIsNamed) {
  start();
  EXPECT_THAT(
      [&] { WatchServer(ServerOptions{.folder = folder_ / "runs", .port = server_->port()}); },
      testing::ThrowsMessage<Error>(HasSubstr("give another --port")));
  // Of a network for documentation alone.
  EXPECT_THAT(
      [&] { WatchServer(ServerOptions{.folder = folder_ / "runs", .host = "192.0.2.1"}); },
      testing::ThrowsMessage<Error>(HasSubstr("192.0.2.1: not an address of this machine")));
}

}  // namespace
}  // namespace riffle
