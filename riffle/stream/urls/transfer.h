// One download: from its URL, over redirects and retries, to its bytes or the reason why there are
// none. Not thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <curl/curl.h>

#include "riffle/stream/urls/fetcher.h"

namespace riffle {

// Returns the addresses of the proxies that the environment names, as socket address and port in
// text. Connections to these are made for proxied requests, and are not requests to them.
std::vector<std::string> proxy_addresses();

class UrlTransfer {
 public:
  using Clock = std::chrono::steady_clock;
  enum class State { waiting, active, done };

  // `limits` and `proxies` must outlive the transfer.
  UrlTransfer(UrlEntry entry, const FetchLimits& limits, const std::vector<std::string>& proxies);

  State state() const { return state_; }
  const std::string& host() const { return host_; }             // that is to be asked next
  Clock::time_point not_before() const { return not_before_; }  // while waiting
  std::size_t held_bytes() const { return fetched_.bytes.size(); }

  // Sets up a request for the caller to drive. Waiting becomes active.
  CURL* begin();
  // Takes the result of the request. Active becomes waiting (a redirect, another attempt) or done.
  void end(CURLcode result);
  Fetched take() { return std::move(fetched_); }

 private:
  struct Close {
    void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
  };

  static std::size_t receive(char* bytes, std::size_t size, std::size_t count, void* self);
  static std::size_t receive_header(char* bytes, std::size_t size, std::size_t count, void* self);
  static curl_socket_t open_socket(void* self, curlsocktype purpose, curl_sockaddr* address);

  void go_to(const std::string& url);
  void answer();
  void fail(const std::string& reason, const std::string& detail);
  void fail_or_retry(const std::string& reason, const std::string& detail);

  const FetchLimits& limits_;
  const std::vector<std::string>& proxies_;
  Fetched fetched_;
  State state_ = State::waiting;
  std::string url_, host_;
  int hops_ = 0, tries_ = 0;
  Clock::time_point not_before_{};
  // What this attempt may still take, once it has begun. The wait between the answer that redirects
  // and the next request is not counted.
  std::optional<Clock::duration> left_;
  Clock::time_point begun_{};  // the request
  std::unique_ptr<CURL, Close> easy_;
  std::size_t header_bytes_ = 0;
  bool too_large_ = false, refused_ = false;
};

}  // namespace riffle
