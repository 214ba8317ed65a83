#include "riffle/stream/urls/fetcher.h"

#include <condition_variable>
#include <mutex>
#include <utility>

#include <gtest/gtest.h>

#include "riffle/base/text.h"
#include "riffle/stream/decoding.h"
#include "riffle/stream/testing/urls_server.h"

namespace riffle {
namespace {

using namespace std::chrono_literals;
using Exchange = LoopbackServer::Exchange;

class Fetcher : public UrlsServer {
 protected:
  // Serves /0 to /(count - 1), each of so many bytes, and counts who asks.
  void serve_bytes(int count, std::size_t size) {
    body_ = std::string(size, 'x');
    for (int i = 0; i < count; ++i) {
      server_.route(cat("/", i), [this](Exchange& exchange) {
        {
          const std::lock_guard lock(mutex_);
          ++asked_;
        }
        changed_.notify_all();
        exchange.reply(200, body_);
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

  std::string body_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int asked_ = 0;
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
  // Each leaves no room for another.
  constexpr int kCount = 5;
  serve_bytes(kCount, kAheadBytes + 1);
  for (const int connections : {1, 2}) {
    UrlFetcher fetcher(local_limits(connections), entries(kCount));
    expect_downloads(fetcher, 0, kCount);
    EXPECT_FALSE(fetcher.next());
  }
}

TEST_F(Fetcher, TheTimeThatARedirectWaitsForItsTurnIsNotTheServers) {
  // Another name for the same machine, asked for one at a time: together they take longer than one
  // may.
  constexpr int kCount = 8;
  const std::string other_host = cat("http://localhost:", server_.port());
  for (int i = 0; i < kCount; ++i) {
    server_.route(cat("/", i), [=](Exchange& exchange) {
      exchange.reply(302, "", cat("Location: ", other_host, "/slow", i, "\r\n"));
    });
    server_.route(cat("/slow", i), [this](Exchange& exchange) {
      exchange.pause(200ms);
      exchange.reply(200, body_);
    });
  }
  body_ = "a picture";
  auto limits = local_limits(16);
  limits.per_host = 1;
  limits.timeout = 1;
  UrlFetcher fetcher(limits, entries(kCount));
  expect_downloads(fetcher, 0, kCount);
  EXPECT_FALSE(fetcher.next());
}

}  // namespace
}  // namespace riffle
