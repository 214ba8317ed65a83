// Downloads from a list of URLs, many at once, handed out in the order of the list.
//
// A thread of its own does the work. Memory is bounded: no download is begun while those held take
// 64 MiB or more, except for the one that the reader waits for; so at most that plus `connections`
// times `max_bytes`. Not thread-safe, except for stop().
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "riffle/image/codec.h"
#include "riffle/stream/urls/list.h"

namespace riffle {

struct FetchLimits {
  int connections = 16;         // downloads at once
  int per_host = 4;             // of these from one host
  double timeout = 30;          // seconds for an attempt, redirects included
  double connect_timeout = 10;  // seconds of these to connect
  std::int64_t max_bytes = std::int64_t{16} << 20;
  int retries = 2;       // after temporary failures
  double backoff = 0.5;  // seconds before the first retry; doubled for each further one
  int redirects = 5;
  bool allow_private = false;  // addresses of the local network
};

struct Fetched {
  UrlEntry entry;
  std::vector<std::byte> bytes;
  DecodeFailure failure;  // without a reason if there are bytes
};

class UrlFetcher {
 public:
  using Entries = std::function<std::optional<UrlEntry>()>;

  // `entries` returns the entries of the list in turn; it is called by the fetcher's thread. An
  // exception that it throws ends the fetching.
  UrlFetcher(const FetchLimits& limits, Entries entries);
  ~UrlFetcher();
  UrlFetcher(const UrlFetcher&) = delete;
  UrlFetcher& operator=(const UrlFetcher&) = delete;

  // Waits until the next download has come or failed for good, and returns it; nothing at the end,
  // or if stopped. Rethrows an exception of the thread after the downloads that had come by then.
  std::optional<Fetched> next();
  void stop();

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace riffle
