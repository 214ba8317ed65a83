// Servers and addresses that fail, mislead or never end: skipped, counted, never more.
#include <array>
#include <atomic>
#include <chrono>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "riffle/base/error.h"
#include "riffle/stream/testing/urls_server.h"

namespace riffle {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::ThrowsMessage;
using Exchange = LoopbackServer::Exchange;

class UrlsHostile : public UrlsServer {};

TEST_F(UrlsHostile, WhatFailsIsSkippedAndCountedByReason) {
  server_.route("/html",
                [](Exchange& e) { e.reply(200, "<html>", "Content-Type: text/html\r\n"); });
  server_.route("/loop", [](Exchange& e) { e.reply(302, "", "Location: /loop\r\n"); });
  server_.route("/nowhere", [](Exchange& e) { e.reply(302, ""); });
  server_.route("/file", [](Exchange& e) { e.reply(302, "", "Location: file:///etc/passwd\r\n"); });
  server_.route("/nothing", [](Exchange& e) { e.write(std::string_view()); });
  server_.route("/noise", [](Exchange& e) { e.write("noise, no HTTP\r\n\r\n"); });
  server_.route("/short", [](Exchange& e) {
    e.write_head(200, "Content-Length: 1000\r\n");
    e.write("less");
  });
  server_.route("/headers", [](Exchange& e) {
    e.write("HTTP/1.1 200 fine\r\n");
    while (e.write("X-More: " + std::string(1000, 'x') + "\r\n")) {
    }
  });
  EXPECT_THAT(skipped(server_.url("/missing")), ElementsAre(Pair("HTTP 404", 1)));
  EXPECT_THAT(skipped(server_.url("/html")), ElementsAre(Pair("not a picture", 1)));
  EXPECT_THAT(skipped(server_.url("/loop")), ElementsAre(Pair("too many redirects", 1)));
  EXPECT_EQ(server_.requests("/loop"), 6);
  EXPECT_THAT(skipped(server_.url("/nowhere")), ElementsAre(Pair("HTTP 302", 1)));
  EXPECT_THAT(skipped(server_.url("/file")), ElementsAre(Pair("not http", 1)));
  EXPECT_THAT(skipped("ftp://127.0.0.1/1.png"), ElementsAre(Pair("not http", 1)));
  EXPECT_THAT(skipped("file:///etc/passwd"), ElementsAre(Pair("not http", 1)));
  EXPECT_THAT(skipped("/1.png"), ElementsAre(Pair("bad address", 1)));
  EXPECT_THAT(skipped("http://" + std::string(20'000, 'x')), ElementsAre(Pair("bad address", 1)));
  EXPECT_THAT(skipped("http://127.0.0.1:1/"), ElementsAre(Pair("cannot connect", 1)));
  EXPECT_THAT(skipped(server_.url("/nothing")), ElementsAre(Pair("broken answer", 1)));
  EXPECT_THAT(skipped(server_.url("/noise")), ElementsAre(Pair("broken answer", 1)));
  EXPECT_THAT(skipped(server_.url("/short")), ElementsAre(Pair("broken answer", 1)));
  EXPECT_THAT(skipped(server_.url("/headers")), ElementsAre(Pair("too large", 1)));
}

TEST_F(UrlsHostile, AnEndlessBodyEndsAtTheLimit) {
  std::atomic<std::int64_t> sent = 0;
  server_.route("/endless", [&](Exchange& e) {
    e.write_head(200);
    while (e.write(std::string(10'000, 'x'))) sent += 10'000;
  });
  server_.route("/claims", [](Exchange& e) {
    e.write_head(200, "Content-Length: 1000000000000\r\n");
    e.pause(10s);  // the claim alone has to be enough
  });
  EXPECT_THAT(skipped(server_.url("/endless"), "max_bytes=100000"),
              ElementsAre(Pair("too large", 1)));
  EXPECT_EQ(server_.requests("/endless"), 1);
  EXPECT_LT(sent, 20'000'000);  // what fits between the two ends
  EXPECT_THAT(skipped(server_.url("/claims")), ElementsAre(Pair("too large", 1)));
}

TEST_F(UrlsHostile, AServerThatDripsIsLeftWhenItsTimeIsUp) {
  const auto drip = [](Exchange& e) {
    e.write_head(200);
    while (e.write("x") && e.pause(20ms)) {
    }
  };
  server_.route("/drip", drip);
  server_.route("/silent", [](Exchange& e) { e.pause(60s); });
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THAT(skipped(server_.url("/drip"), "timeout=0.3&retries=1"),
              ElementsAre(Pair("timeout", 1)));
  EXPECT_THAT(skipped(server_.url("/silent"), "timeout=0.3&retries=0"),
              ElementsAre(Pair("timeout", 1)));
  EXPECT_EQ(server_.requests("/drip"), 2);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 20s);
}

TEST_F(UrlsHostile, TheLocalNetworkIsRefusedHoweverItIsNamed) {
  serve(1);
  const auto port = cat(":", server_.port(), "/0");
  list({"http://127.0.0.1" + port, "http://localhost" + port, "http://LOCALHOST." + port,
        "http://0.0.0.0" + port, "http://2130706433" + port, "http://0x7f.1" + port,
        "http://[::1]" + port, "http://[::ffff:127.0.0.1]" + port, "http://user@127.0.0.1" + port,
        "http://10.0.0.1/", "http://[fe80::1]/", "http://169.254.169.254/latest/meta-data"});
  const auto stream = open_public("retries=0");
  EXPECT_THAT([&] { stream->next(); }, ThrowsMessage<Error>(HasSubstr("12 private address")));
  EXPECT_EQ(server_.requests("/0"), 0);
}

TEST_F(UrlsHostile, ANameThatLeadsToTheLocalNetworkIsRefusedBeforeConnecting) {
  // The name of this machine, where it is one that says nothing about where it leads.
  std::array<char, 256> name{};
  ASSERT_EQ(::gethostname(name.data(), name.size() - 1), 0);
  serve(1);
  list({cat("http://", name.data(), ":", server_.port(), "/0")});
  const auto stream = open_public("retries=0&timeout=5");
  EXPECT_THROW(stream->next(), Error);
  EXPECT_EQ(server_.requests("/0"), 0);
  if (!stream->skipped().contains("private address")) {
    GTEST_SKIP() << name.data() << " leads nowhere, or to a public address";
  }
}

TEST_F(UrlsHostile, TheProxyOfTheEnvironmentIsUsedAndItsAnswersAreNotTrusted) {
  // A proxy is asked for whole URLs.
  server_.serve("http://pictures.example/1", solid_png(5));
  server_.route("http://pictures.example/2",
                [](Exchange& e) { e.reply(302, "", "Location: http://127.0.0.1/secret\r\n"); });
  ::setenv("http_proxy", server_.url("").c_str(), 1);
  list({"http://pictures.example/1", "http://pictures.example/2", "http://192.168.1.1/3"});
  const auto stream = open_public();
  EXPECT_THAT(levels(*stream), ElementsAre(5));
  EXPECT_THAT(stream->skipped(), ElementsAre(Pair("private address", 2)));
  EXPECT_EQ(server_.requests("http://127.0.0.1/secret"), 0);
}

TEST_F(UrlsHostile, WhereNothingCanBeUsedTheStreamSaysSo) {
  list({server_.url("/1"), server_.url("/2")});
  const auto stream = open();
  EXPECT_THAT([&] { stream->next(); },
              ThrowsMessage<Error>(AllOf(HasSubstr("list.txt"), HasSubstr("2 HTTP 404"))));
}

}  // namespace
}  // namespace riffle
