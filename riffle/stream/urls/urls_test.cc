#include "riffle/stream/urls/urls.h"

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <future>
#include <mutex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "riffle/base/error.h"
#include "riffle/base/random.h"
#include "riffle/stream/testing/matchers.h"
#include "riffle/stream/testing/recording.h"
#include "riffle/stream/testing/urls_server.h"

namespace riffle {
namespace fs = std::filesystem;
namespace {

using namespace std::chrono_literals;
using Exchange = LoopbackServer::Exchange;

class Urls : public UrlsServer {};

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
  int waiting = 0, at_once = 0, most_at_once = 0;
  for (int i = 0; i < 12; ++i) {
    server_.route(cat("/", i), [&, i](Exchange& exchange) {
      // Nobody is answered until three are here: with fewer at once this would time out.
      std::unique_lock lock(mutex);
      ++waiting;
      most_at_once = std::max(most_at_once, ++at_once);
      changed.notify_all();
      changed.wait_for(lock, 10s, [&] { return waiting >= 3; });
      --at_once;
      lock.unlock();
      const auto body = solid_png(i);
      exchange.reply(200, {reinterpret_cast<const char*>(body.data()), body.size()});
    });
    lines.push_back(server_.url(cat("/", i)));
  }
  list(lines);
  EXPECT_THAT(levels(*open("per_host=3&timeout=5&retries=0")),
              ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
  EXPECT_EQ(most_at_once, 3);
}

TEST_F(Urls, TemporaryFailuresAreTriedAgain) {
  for (const int status : {429, 500, 503}) {
    const auto target = cat("/", status);
    server_.route(target, [this, status, target](Exchange& e) {
      if (server_.requests(target) < 3) return e.reply(status, "later");
      const auto body = solid_png(7);
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
    const auto body = solid_png(7);
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

TEST_F(Urls, SeekContinuesAsIfNothingHadHappened) {
  std::vector<std::string> lines;
  for (int i = 0; i < 60; ++i) {
    server_.serve(cat("/", i), solid_png(i));
    if (i % 7 == 3) lines.push_back("# a comment");
    if (i % 9 == 4) lines.push_back("");
    lines.push_back(i % 6 == 2 ? server_.url("/missing") : cat(server_.url(cat("/", i)), " ", i));
  }
  list(lines);
  const Recording recording = record(*open("threads=2&connections=7"));
  ASSERT_EQ(recording.samples.size(), 50u);
  for (std::uint64_t round = 0; round < 8; ++round) {
    Random random(7, Purpose("seek"), round);
    const auto stream = open(cat("threads=", round % 4, "&connections=", 1 + round));
    for (auto left = random.below(5); left > 0; --left) stream->next();
    expect_continues(*stream, recording, random.below(recording.positions.size()));
  }
}

TEST_F(Urls, ALineMayBeAddedAfterOneThatHadNoEnd) {
  serve(3);
  for (const char* end : {"\n", "\r\n"}) {
    std::ofstream(folder_ / "list.txt") << server_.url("/0") << end << server_.url("/1");
    const auto before = record(*open());
    ASSERT_EQ(before.samples.size(), 2u);
    std::ofstream(folder_ / "list.txt", std::ios::app) << end << server_.url("/2") << end;
    const auto after = record(*open());
    ASSERT_EQ(after.samples.size(), 3u);
    const auto stream = open();
    stream->seek(before.positions.back());
    EXPECT_THAT(levels(*stream), ElementsAre(2));
    EXPECT_EQ(stream->position(), after.positions.back());
  }
}

TEST_F(Urls, WhatIsSkippedAddsUp) {
  serve(2);
  list({server_.url("/0"), server_.url("/missing"), server_.url("/1")});
  for (const std::string threads : {"threads=0", "threads=2"}) {
    expect_skips_add_up(cat("urls:", folder_.string(), "/list.txt?allow_private=1&", threads),
                        "HTTP 404");
  }
}

TEST_F(Urls, ATextThatIsNotAPositionIsRefusedAndChangesNothing) {
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

TEST_F(Urls, AListThatCannotBeReadOnTheWayIsAnErrorOfNextUntilItCanBeAgain) {
  for (const std::string threads : {"threads=0", "threads=3"}) {
    serve(2);
    const auto stream = open(threads);
    const auto start = stream->position();
    fs::remove(folder_ / "list.txt");
    fs::create_symlink("/proc/self/mem", folder_ / "list.txt");  // opens, but cannot be read
    for (int tries = 0; tries < 2; ++tries) {
      EXPECT_THAT([&] { stream->next(); },
                  ThrowsMessage<Error>(AllOf(HasSubstr("list.txt"), HasSubstr("output error"))));
    }
    EXPECT_EQ(stream->position(), start);
    EXPECT_THROW(open(threads), Error);
    fs::remove(folder_ / "list.txt");
    serve(2);
    stream->seek(start);
    EXPECT_THAT(levels(*stream), ElementsAre(0, 1));
  }
}

TEST_F(Urls, AListThatCannotBeReadOrIsEmptyIsRefused) {
  EXPECT_THAT([&] { open(); }, ThrowsMessage<Error>(HasSubstr("list.txt")));
  EXPECT_THROW(open_stream("urls:"), Error);
  EXPECT_THROW(open_stream("urls:" + folder_.string()), Error);
  list({"# nothing", ""});
  EXPECT_THAT([&] { open(); }, ThrowsMessage<Error>(HasSubstr("no URL")));
  serve(1);
  EXPECT_THAT([&] { open("per_hots=1"); }, ThrowsMessage<Error>(HasSubstr("'per_host'")));
}

}  // namespace
}  // namespace riffle
