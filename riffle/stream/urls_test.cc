#include "riffle/stream/urls.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <mutex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "riffle/base/error.h"
#include "riffle/base/log.h"
#include "riffle/base/random.h"
#include "riffle/base/text.h"
#include "riffle/image/codec.h"
#include "riffle/stream/loopback_server.h"

namespace riffle {
namespace fs = std::filesystem;
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::ThrowsMessage;
using Exchange = LoopbackServer::Exchange;

std::vector<std::byte> png(int level) {
  Picture made(8, 6);
  std::fill(made.rgb.begin(), made.rgb.end(), static_cast<std::uint8_t>(level));
  return encode_png(made);
}

// A server, and a list of what to ask it for.
class Urls : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* variable : {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy",
                                 "ALL_PROXY", "no_proxy", "NO_PROXY"}) {
      ::unsetenv(variable);
    }
    std::string name = (fs::temp_directory_path() / "riffle-urls-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root_ = name;
    set_log_level(LogLevel::quiet);
  }
  void TearDown() override {
    ::unsetenv("http_proxy");
    fs::remove_all(root_);
    set_log_level(LogLevel::info);
  }

  void list(const std::vector<std::string>& lines) {
    std::ofstream out(root_ / "list.txt", std::ios::binary);
    for (const auto& line : lines) out << line << '\n';
  }
  std::unique_ptr<Stream> open_public(const std::string& options = "") {
    return open_stream(cat("urls:", (root_ / "list.txt").string(), "?backoff=0.01&", options));
  }
  std::unique_ptr<Stream> open(const std::string& options = "") {
    return open_public("allow_private=1&" + options);
  }
  // Serves pictures /0 to /(count - 1), and lists them.
  void serve(int count) {
    std::vector<std::string> lines;
    for (int i = 0; i < count; ++i) {
      server_.serve(cat("/", i), png(i));
      lines.push_back(server_.url(cat("/", i)));
    }
    list(lines);
  }
  static std::vector<int> levels(Stream& stream) {
    std::vector<int> all;
    while (const auto sample = stream.next()) all.push_back(sample->picture.rgb.at(0));
    return all;
  }
  // A good picture, and one that fails: the reason.
  std::map<std::string, std::int64_t> skipped(const std::string& url,
                                              const std::string& options = "") {
    server_.serve("/good", png(1));
    list({url, server_.url("/good")});
    const auto stream = open(options);
    EXPECT_EQ(levels(*stream).size(), 1u);
    return stream->skipped();
  }

  fs::path root_;
  LoopbackServer server_;
};

TEST_F(Urls, GivePicturesInTheOrderOfTheListWithTheirLabels) {
  serve(3);
  list({"# pictures", "", server_.url("/2") + "\tcat", "  " + server_.url("/0") + "  a dog \r",
        server_.url("/1")});
  const auto stream = open();
  auto sample = stream->next();
  ASSERT_TRUE(sample);
  EXPECT_EQ(sample->picture.rgb.at(0), 2);
  EXPECT_EQ(sample->label, "cat");
  EXPECT_EQ(sample->key, server_.url("/2"));
  EXPECT_EQ(sample->clip, kNoClip);
  sample = stream->next();
  ASSERT_TRUE(sample);
  EXPECT_EQ(sample->picture.rgb.at(0), 0);
  EXPECT_EQ(sample->label, "a dog");
  EXPECT_EQ(sample->index, 1u);
  EXPECT_EQ(stream->next()->label, "");
  EXPECT_FALSE(stream->next());
  EXPECT_FALSE(stream->next());
  EXPECT_THAT(stream->skipped(), IsEmpty());
}

TEST_F(Urls, AreFetchedManyAtOnceUpToTheLimitOfAHost) {
  std::vector<std::string> lines;
  std::mutex mutex;
  std::condition_variable changed;
  int waiting = 0;
  for (int i = 0; i < 12; ++i) {
    server_.route(cat("/", i), [&, i](Exchange& exchange) {
      // Nobody is answered until three are here: with fewer at once this would time out.
      std::unique_lock lock(mutex);
      ++waiting;
      changed.notify_all();
      changed.wait_for(lock, 10s, [&] { return waiting >= 3; });
      lock.unlock();
      const auto body = png(i);
      exchange.reply(200, {reinterpret_cast<const char*>(body.data()), body.size()});
    });
    lines.push_back(server_.url(cat("/", i)));
  }
  list(lines);
  EXPECT_THAT(levels(*open("per_host=3&timeout=5&retries=0")),
              ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
  EXPECT_EQ(server_.most_at_once(), 3);
}

TEST_F(Urls, WhatFailsIsSkippedAndCountedByReason) {
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

TEST_F(Urls, AnEndlessBodyEndsAtTheLimit) {
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

TEST_F(Urls, AServerThatDripsIsLeftWhenItsTimeIsUp) {
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

TEST_F(Urls, FailuresThatMayPassAreTriedAgain) {
  for (const int status : {429, 500, 503}) {
    const auto target = cat("/", status);
    server_.route(target, [this, status, target](Exchange& e) {
      if (server_.requests(target) < 3) return e.reply(status, "later");
      const auto body = png(7);
      e.reply(200, {reinterpret_cast<const char*>(body.data()), body.size()});
    });
    list({server_.url(target)});
    EXPECT_THAT(levels(*open()), ElementsAre(7));
    EXPECT_EQ(server_.requests(target), 3);
  }
  server_.route("/always", [](Exchange& e) { e.reply(503, "never"); });
  EXPECT_THAT(skipped(server_.url("/always"), "retries=4"), ElementsAre(Pair("HTTP 503", 1)));
  EXPECT_EQ(server_.requests("/always"), 5);
  EXPECT_THAT(skipped(server_.url("/gone")), ElementsAre(Pair("HTTP 404", 1)));
  EXPECT_EQ(server_.requests("/gone"), 1);
}

TEST_F(Urls, AServerThatAsksForTimeIsGivenIt) {
  server_.route("/later", [this](Exchange& e) {
    if (server_.requests("/later") < 2) return e.reply(503, "later", "Retry-After: 1\r\n");
    const auto body = png(7);
    e.reply(200, {reinterpret_cast<const char*>(body.data()), body.size()});
  });
  list({server_.url("/later")});
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THAT(levels(*open()), ElementsAre(7));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 1s);
}

TEST_F(Urls, RedirectsAreFollowedUpToTheLimit) {
  serve(1);
  for (int i = 1; i <= 3; ++i) {
    server_.route(cat("/r", i), [i](Exchange& e) {
      e.reply(301, "", i == 1 ? "Location: /0\r\n" : cat("Location: /r", i - 1, "\r\n"));
    });
  }
  list({server_.url("/r3"), server_.url("/r2")});
  EXPECT_THAT(levels(*open("redirects=3")), ElementsAre(0, 0));
  const auto stream = open("redirects=2");
  EXPECT_THAT(levels(*stream), ElementsAre(0));
  EXPECT_THAT(stream->skipped(), ElementsAre(Pair("too many redirects", 1)));
}

TEST_F(Urls, TheLocalNetworkIsRefusedHoweverItIsNamed) {
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

TEST_F(Urls, ANameThatLeadsToTheLocalNetworkIsRefusedBeforeConnecting) {
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

TEST_F(Urls, TheProxyOfTheEnvironmentIsUsedAndItsAnswersAreNotTrusted) {
  // A proxy is asked for whole URLs.
  server_.serve("http://pictures.example/1", png(5));
  server_.route("http://pictures.example/2",
                [](Exchange& e) { e.reply(302, "", "Location: http://127.0.0.1/secret\r\n"); });
  ::setenv("http_proxy", server_.url("").c_str(), 1);
  list({"http://pictures.example/1", "http://pictures.example/2", "http://192.168.1.1/3"});
  const auto stream = open_public();
  EXPECT_THAT(levels(*stream), ElementsAre(5));
  EXPECT_THAT(stream->skipped(), ElementsAre(Pair("private address", 2)));
  EXPECT_EQ(server_.requests("http://127.0.0.1/secret"), 0);
}

TEST_F(Urls, StopEndsTheWaitForAServer) {
  std::promise<void> asked;
  server_.route("/silent", [&](Exchange& e) {
    asked.set_value();
    e.pause(60s);
  });
  for (const std::string threads : {"threads=0", "threads=3"}) {
    asked = {};
    list({server_.url("/silent")});
    const auto stream = open("timeout=60&retries=0&" + threads);
    auto next = std::async(std::launch::async, [&] { return stream->next(); });
    ASSERT_EQ(asked.get_future().wait_for(10s), std::future_status::ready);
    stream->stop();
    ASSERT_EQ(next.wait_for(10s), std::future_status::ready);
    EXPECT_FALSE(next.get());
    EXPECT_FALSE(stream->next());
    stream->stop();
  }
}

TEST_F(Urls, SeekGoesOnAsIfNothingHadHappened) {
  std::vector<std::string> lines;
  for (int i = 0; i < 60; ++i) {
    server_.serve(cat("/", i), png(i));
    if (i % 7 == 3) lines.push_back("# a comment");
    if (i % 9 == 4) lines.push_back("");
    lines.push_back(i % 6 == 2 ? server_.url("/missing") : cat(server_.url(cat("/", i)), " ", i));
  }
  list(lines);
  const auto first = open("threads=2&connections=7");
  std::vector<std::string> positions = {first->position()};
  std::vector<Sample> samples;
  while (auto sample = first->next()) {
    samples.push_back(std::move(*sample));
    positions.push_back(first->position());
  }
  ASSERT_EQ(samples.size(), 50u);
  for (std::uint64_t round = 0; round < 8; ++round) {
    Random random(7, Purpose("seek"), round);
    const auto begin = random.below(positions.size());
    const auto second = open(cat("threads=", round % 4, "&connections=", 1 + round));
    for (auto left = random.below(5); left > 0; --left) second->next();
    second->seek(positions[begin]);
    EXPECT_EQ(second->position(), positions[begin]);
    for (auto i = begin; i < samples.size(); ++i) {
      const auto sample = second->next();
      ASSERT_TRUE(sample);
      ASSERT_EQ(sample->key, samples[i].key);
      ASSERT_EQ(sample->label, samples[i].label);
      ASSERT_EQ(sample->index, samples[i].index);
      ASSERT_EQ(sample->picture, samples[i].picture);
      ASSERT_EQ(second->position(), positions[i + 1]);
    }
    EXPECT_FALSE(second->next());
  }
}

TEST_F(Urls, ATextThatIsNoPositionIsRefusedAndChangesNothing) {
  serve(3);
  const auto stream = open();
  stream->next();
  const auto position = stream->position();
  for (const auto* bad : {"", "1", "1 1", "x 1 1", "-1 1 1", "1 1 5", "1 1 100000", "1 1 1 1"}) {
    EXPECT_THROW(stream->seek(bad), Error) << bad;
  }
  EXPECT_EQ(stream->position(), position);
  EXPECT_THAT(levels(*stream), ElementsAre(1, 2));
}

TEST_F(Urls, AListThatCannotBeReadOrIsEmptyIsRefused) {
  EXPECT_THAT([&] { open(); }, ThrowsMessage<Error>(HasSubstr("list.txt")));
  EXPECT_THROW(open_stream("urls:"), Error);
  EXPECT_THROW(open_stream("urls:" + root_.string()), Error);
  list({"# nothing", ""});
  EXPECT_THAT([&] { open(); }, ThrowsMessage<Error>(HasSubstr("no URL")));
  serve(1);
  EXPECT_THAT([&] { open("per_hots=1"); }, ThrowsMessage<Error>(HasSubstr("'per_host'")));
}

TEST_F(Urls, WhereNothingCanBeUsedTheStreamSaysSo) {
  list({server_.url("/1"), server_.url("/2")});
  const auto stream = open();
  EXPECT_THAT([&] { stream->next(); },
              ThrowsMessage<Error>(AllOf(HasSubstr("list.txt"), HasSubstr("2 HTTP 404"))));
}

}  // namespace
}  // namespace riffle
