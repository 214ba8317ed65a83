#include "riffle/stream/urls/transfer.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <span>
#include <string_view>
#include <utility>

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include "riffle/base/random.h"
#include "riffle/base/text.h"
#include "riffle/stream/urls/address.h"

namespace riffle {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr std::size_t kMaxHeaderBytes = std::size_t{256} << 10;
constexpr double kMaxBackoff = 60;  // seconds, whatever a server asks for

std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::ceil<std::chrono::milliseconds>(Seconds(seconds));
}

// A URL split into its parts by the rules that the request will follow.
class UrlParts {
 public:
  UrlParts(const std::string& url, unsigned flags) : parts_(curl_url()) {
    valid_ = curl_url_set(parts_, CURLUPART_URL, url.c_str(), flags) == CURLUE_OK;
  }
  ~UrlParts() { curl_url_cleanup(parts_); }
  UrlParts(const UrlParts&) = delete;
  UrlParts& operator=(const UrlParts&) = delete;

  bool is_valid() const { return valid_; }
  std::string get(CURLUPart part) const {
    char* text = nullptr;
    if (curl_url_get(parts_, part, &text, 0) != CURLUE_OK) return "";
    std::string copy(text);
    curl_free(text);
    return copy;
  }

 private:
  CURLU* parts_;
  bool valid_ = false;
};

std::string address_text(const sockaddr& address, socklen_t size) {
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  if (::getnameinfo(&address, size, host.data(), host.size(), port.data(), port.size(),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "";
  }
  return cat(host.data(), ' ', port.data());
}

template <typename Value>
Value info(CURL* easy, CURLINFO what, Value fallback) {
  curl_easy_getinfo(easy, what, &fallback);
  return fallback;
}

}  // namespace

std::vector<std::string> proxy_addresses() {
  std::vector<std::string> addresses;
  for (const char* variable :
       {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"}) {
    const char* url = std::getenv(variable);
    if (url == nullptr || *url == '\0') continue;
    const UrlParts parts(url, CURLU_GUESS_SCHEME | CURLU_NON_SUPPORT_SCHEME);
    auto host = parts.get(CURLUPART_HOST);
    if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
    auto port = parts.get(CURLUPART_PORT);
    if (port.empty()) port = parts.get(CURLUPART_SCHEME) == "https" ? "443" : "1080";  // as libcurl
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (::getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) continue;
    for (const auto* one = found; one != nullptr; one = one->ai_next) {
      addresses.push_back(address_text(*one->ai_addr, one->ai_addrlen));
    }
    ::freeaddrinfo(found);
  }
  return addresses;
}

UrlTransfer::UrlTransfer(UrlEntry entry, const FetchLimits& limits,
                         const std::vector<std::string>& proxies)
    : limits_(limits), proxies_(proxies) {
  fetched_.entry = std::move(entry);
  go_to(fetched_.entry.url);
}

// A URL that cannot be requested at all is done at once.
void UrlTransfer::go_to(const std::string& url) {
  const UrlParts parts(url, CURLU_NON_SUPPORT_SCHEME);
  const auto scheme = parts.get(CURLUPART_SCHEME);
  url_ = url;
  host_ = parts.get(CURLUPART_HOST);
  std::transform(host_.begin(), host_.end(), host_.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  if (!parts.is_valid()) {
    fail("bad address", "not a URL");
  } else if (scheme != "http" && scheme != "https") {
    fail("not http", cat("only http and https are fetched, not ", scheme));
  } else if (!limits_.allow_private && is_private_host(host_)) {
    fail("private address", host_);
  } else {
    state_ = State::waiting;
  }
}

CURL* UrlTransfer::begin() {
  easy_.reset(curl_easy_init());
  if (!easy_) throw std::bad_alloc();
  auto* const easy = easy_.get();
  begun_ = Clock::now();
  if (!left_) left_ = milliseconds(limits_.timeout);
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*left_).count();
  curl_easy_setopt(easy, CURLOPT_URL, url_.c_str());
#if LIBCURL_VERSION_NUM >= 0x075500
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
#else
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
#endif
  // Redirects are followed here, not by libcurl: each is checked as a new URL.
  curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_USERAGENT, "riffle");
  curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, static_cast<long>(std::max<long long>(1, left)));
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                   static_cast<long>(milliseconds(limits_.connect_timeout).count()));
  curl_easy_setopt(easy, CURLOPT_MAXFILESIZE_LARGE, static_cast<curl_off_t>(limits_.max_bytes));
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, receive);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, this);
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, receive_header);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, this);
  curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
  curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, this);
  fetched_.bytes.clear();
  header_bytes_ = 0;
  too_large_ = refused_ = false;
  state_ = State::active;
  return easy;
}

void UrlTransfer::end(CURLcode result) {
  *left_ -= Clock::now() - begun_;
  const auto* const text = curl_easy_strerror(result);
  if (refused_) {
    fail("private address", host_);
  } else if (too_large_ || result == CURLE_FILESIZE_EXCEEDED) {
    fail("too large", cat("over ", bytes_text(static_cast<std::uint64_t>(limits_.max_bytes))));
  } else {
    switch (result) {
      case CURLE_OK:
        answer();
        break;
      case CURLE_OPERATION_TIMEDOUT:
        fail_or_retry("timeout", text);
        break;
      case CURLE_COULDNT_RESOLVE_HOST:
      case CURLE_COULDNT_RESOLVE_PROXY:
        fail_or_retry("unknown host", text);
        break;
      case CURLE_COULDNT_CONNECT:
        fail_or_retry("cannot connect", text);
        break;
      case CURLE_PEER_FAILED_VERIFICATION:
      case CURLE_SSL_CONNECT_ERROR:
      case CURLE_SSL_CACERT_BADFILE:
        fail("not secure", text);
        break;
      default:
        fail_or_retry("broken answer", text);
    }
  }
  easy_.reset();
}

void UrlTransfer::answer() {
  const auto status = info<long>(easy_.get(), CURLINFO_RESPONSE_CODE, 0);
  const auto* const redirect = info<char*>(easy_.get(), CURLINFO_REDIRECT_URL, nullptr);
  if (status >= 200 && status < 300) {
    state_ = State::done;
  } else if (redirect != nullptr) {
    if (++hops_ > limits_.redirects) {
      fail("too many redirects", cat("more than ", limits_.redirects));
    } else {
      go_to(redirect);
    }
  } else if (status == 429 || status >= 500) {
    fail_or_retry(cat("HTTP ", status), "");
  } else {
    fail(cat("HTTP ", status), "");
  }
}

void UrlTransfer::fail(const std::string& reason, const std::string& detail) {
  state_ = State::done;
  fetched_.bytes = {};
  fetched_.failure = {reason, detail};
}

void UrlTransfer::fail_or_retry(const std::string& reason, const std::string& detail) {
  if (tries_ >= limits_.retries) {
    fail(reason,
         tries_ == 0 ? detail : cat(detail, detail.empty() ? "" : ", ", tries_ + 1, " tries"));
    return;
  }
  double wait = limits_.backoff * static_cast<double>(1 << std::min(tries_, 16));
  // Requests that failed together must not be tried again together.
  Random random(0, Purpose("retries"), static_cast<std::uint64_t>(fetched_.entry.line));
  wait *= random.uniform(0.75f, 1.25f);
  const auto asked = info<curl_off_t>(easy_.get(), CURLINFO_RETRY_AFTER, 0);
  wait = std::min(kMaxBackoff, std::max(wait, static_cast<double>(asked)));
  ++tries_;
  hops_ = 0;
  left_.reset();
  fetched_.bytes = {};
  not_before_ = Clock::now() + milliseconds(wait);
  go_to(fetched_.entry.url);
}

std::size_t UrlTransfer::receive(char* bytes, std::size_t size, std::size_t count, void* self) {
  auto& transfer = *static_cast<UrlTransfer*>(self);
  auto& held = transfer.fetched_.bytes;
  const auto all = size * count;
  if (all > static_cast<std::size_t>(transfer.limits_.max_bytes) - held.size()) {
    transfer.too_large_ = true;
    return 0;  // ends the transfer
  }
  const auto* const begin = reinterpret_cast<const std::byte*>(bytes);
  held.insert(held.end(), begin, begin + all);
  return all;
}

std::size_t UrlTransfer::receive_header(char*, std::size_t size, std::size_t count, void* self) {
  auto& transfer = *static_cast<UrlTransfer*>(self);
  transfer.header_bytes_ += size * count;
  transfer.too_large_ = transfer.header_bytes_ > kMaxHeaderBytes;
  return transfer.too_large_ ? 0 : size * count;
}

// Called when the address of a name is known and no connection is made yet.
curl_socket_t UrlTransfer::open_socket(void* self, curlsocktype, curl_sockaddr* address) {
  auto& transfer = *static_cast<UrlTransfer*>(self);
  if (!transfer.limits_.allow_private && !is_public_address(address->addr)) {
    const auto text = address_text(address->addr, address->addrlen);
    const auto& proxies = transfer.proxies_;
    if (std::find(proxies.begin(), proxies.end(), text) == proxies.end()) {
      transfer.refused_ = true;
      return CURL_SOCKET_BAD;
    }
  }
  return ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

}  // namespace riffle
