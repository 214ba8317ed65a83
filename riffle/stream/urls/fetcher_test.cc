#include "riffle/stream/urls/fetcher.h"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <future>
#include <mutex>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "riffle/base/text.h"
#include "riffle/stream/decoding.h"
#include "riffle/stream/testing/urls_server.h"

namespace riffle {
namespace {

using namespace std::chrono_literals;
using Exchange = LoopbackServer::Exchange;

// What the server's threads use: a base before the server's, for they end with the server.
struct ServedBytes {
  void count(int& what) {
    {
      const std::lock_guard lock(mutex_);
      ++what;
    }
    changed_.notify_all();
  }

  std::string body_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int asked_ = 0, answered_ = 0;
};

class Fetcher : protected ServedBytes, public UrlsServer {
 protected:
  // Serves /0 to /(count - 1), each of so many bytes, and counts who asks and is answered.
  void serve_bytes(int count, std::size_t size) {
    body_ = std::string(size, 'x');
    ServedBytes& served = *this;
    for (int i = 0; i < count; ++i) {
      server_.route(cat("/", i), [&served](Exchange& exchange) {
        served.count(served.asked_);
        exchange.reply(200, served.body_);
        served.count(served.answered_);
      });
    }
  }

  UrlFetcher::Entries entries(int count) const {
    return [this, count, i = 0]() mutable -> std::optional<UrlEntry> {
      if (i == count) return std::nullopt;
      UrlEntry entry;
      entry.url = server_.url(cat("/", i++));
      entry.line = i;
      return entry;
    };
  }

  // Reads `count` downloads that come whole and in their order.
  void expect_downloads(UrlFetcher& fetcher, int first, int count) const {
    for (int i = first; i < first + count; ++i) {
      const auto fetched = fetcher.next();
      ASSERT_TRUE(fetched) << i;
      EXPECT_EQ(fetched->failure.reason, "") << i;
      EXPECT_EQ(fetched->entry.line, i + 1);
      EXPECT_EQ(fetched->bytes.size(), body_.size());
    }
  }

  int asked() {
    const std::lock_guard lock(mutex_);
    return asked_;
  }
};

FetchLimits local_limits(int connections) {
  FetchLimits limits;
  limits.allow_private = true;
  limits.connections = limits.per_host = connections;
  limits.retries = 0;
  limits.timeout = 60;
  limits.max_bytes = std::int64_t{128} << 20;
  return limits;
}

TEST_F(Fetcher, HoldsNoMoreThanItMayWhileNobodyReads) {
  constexpr std::size_t kBody = std::size_t{8} << 20;
  constexpr int kAhead = static_cast<int>(kAheadBytes / kBody), kCount = 3 * kAhead;
  serve_bytes(kCount, kBody);
  UrlFetcher fetcher(local_limits(1), entries(kCount));
  expect_downloads(fetcher, 0, 1);
  {
    std::unique_lock lock(mutex_);
    ASSERT_TRUE(changed_.wait_for(lock, 30s, [&] { return asked_ >= 1 + kAhead; }));
  }
  // Gives the thread the time in which it could have got all the rest.
  UrlFetcher other(local_limits(1), entries(kCount));
  expect_downloads(other, 0, kCount);
  EXPECT_EQ(asked(), kCount + 1 + kAhead);
  expect_downloads(fetcher, 1, kCount - 1);
  EXPECT_FALSE(fetcher.next());
}

TEST_F(Fetcher, WhatTheReaderWaitsForComesHoweverLargeItIs) {
  // More than there is room for, and than the sockets hold.
  serve_bytes(2, kAheadBytes + (std::size_t{16} << 20));
  ServedBytes& served = *this;
  // The first has to be begun again when the second has taken all the room.
  server_.route("/0", [&served, again = server_.url("/again")](Exchange& exchange) {
    {
      std::unique_lock lock(served.mutex_);
      served.changed_.wait_for(lock, 30s, [&] { return served.answered_ > 0; });
    }
    exchange.reply(302, "", cat("Location: ", again, "\r\n"));
  });
  server_.route("/again", [](Exchange& exchange) { exchange.reply(200, "a picture"); });
  UrlFetcher fetcher(local_limits(2), entries(2));
  auto next = std::async(std::launch::async, [&] { return fetcher.next(); });
  if (next.wait_for(30s) != std::future_status::ready) fetcher.stop();
  const auto first = next.get();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->failure.reason, "");
  EXPECT_EQ(first->bytes.size(), 9u);
  expect_downloads(fetcher, 1, 1);
  EXPECT_FALSE(fetcher.next());
}

TEST_F(Fetcher, TheTimeThatARedirectWaitsForItsTurnIsNotTheServers) {
  // Another name for the same machine, asked for one at a time: together they take longer than one
  // may.
  constexpr int kCount = 16;
  const std::string other_host = cat("http://localhost:", server_.port());
  body_ = "a picture";
  ServedBytes& served = *this;
  for (int i = 0; i < kCount; ++i) {
    server_.route(cat("/", i), [=](Exchange& exchange) {
      exchange.reply(302, "", cat("Location: ", other_host, "/slow", i, "\r\n"));
    });
    server_.route(cat("/slow", i), [&served](Exchange& exchange) {
      exchange.pause(150ms);
      exchange.reply(200, served.body_);
    });
  }
  auto limits = local_limits(kCount);
  limits.per_host = 1;
  limits.timeout = 2;
  UrlFetcher fetcher(limits, entries(kCount));
  expect_downloads(fetcher, 0, kCount);
  EXPECT_FALSE(fetcher.next());
}

}  // namespace
}  // namespace riffle
