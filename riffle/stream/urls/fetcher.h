// Downloads from a list of URLs, many at once, handed out in the order of the list.
//
// A thread of its own does the work. What it holds ahead of the reader is bounded: no download is
// begun while those held weigh 64 MiB or more, but for the one that the reader waits for; so at
// most that plus `connections` times `max_bytes`. next() is called by one thread at a time, stop()
// by any.
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
  double timeout = 30;          // seconds for a try, redirects included
  double connect_timeout = 10;  // seconds of these until the connection stands
  std::int64_t max_bytes = std::int64_t{16} << 20;
  int retries = 2;       // after failures that may pass
  double backoff = 0.5;  // seconds before the first retry; doubled for each further one
  int redirects = 5;
  bool allow_private = false;  // addresses of the local network
};

struct Fetched {
  UrlEntry entry;
  std::vector<std::byte> bytes;
  DecodeFailure failure;  // no reason: there are bytes
};

class UrlFetcher {
 public:
  using Entries = std::function<std::optional<UrlEntry>()>;

  // `entries` gives the list; it is called by the fetcher's thread. What it throws ends the
  // fetching.
  UrlFetcher(const FetchLimits& limits, Entries entries);
  ~UrlFetcher();
  UrlFetcher(const UrlFetcher&) = delete;
  UrlFetcher& operator=(const UrlFetcher&) = delete;

  // The following download, once it has come or failed for good. Nothing at the end, or when
  // stopped. Where the thread met an exception, that comes out behind the downloads that were
  // there by then, each time.
  std::optional<Fetched> next();
  void stop();

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace riffle
