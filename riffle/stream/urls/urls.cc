#include "riffle/stream/urls/urls.h"

#include <filesystem>
#include <mutex>
#include <utility>

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/stream/decoding.h"
#include "riffle/stream/pull_ahead.h"
#include "riffle/stream/skip_log.h"
#include "riffle/stream/urls/fetcher.h"
#include "riffle/stream/urls/list.h"

namespace riffle {
namespace {

struct UrlsOptions {
  std::filesystem::path list;
  FetchLimits limits;
  Decoding decoding;
};

UrlsOptions urls_options(Uri& uri) {
  constexpr double kDay = 86400;
  UrlsOptions options;
  if (uri.path().empty()) throw Error("urls: needs a file, such as urls:/data/pictures.txt");
  options.list = uri.path();
  auto& limits = options.limits;
  const auto integer = [&](const char* key, int fallback, int low, int high) {
    return static_cast<int>(uri.get_integer(key, fallback, low, high));
  };
  limits.connections = integer("connections", limits.connections, 1, 1000);
  limits.per_host = integer("per_host", limits.per_host, 1, 1000);
  limits.timeout = uri.get_number("timeout", limits.timeout, 0.001, kDay);
  limits.connect_timeout = uri.get_number("connect_timeout", limits.connect_timeout, 0.001, kDay);
  limits.max_bytes = uri.get_integer("max_bytes", limits.max_bytes, 1,
                                     static_cast<std::int64_t>(kMaxPictureBytes));
  limits.retries = integer("retries", limits.retries, 0, 100);
  limits.backoff = uri.get_number("backoff", limits.backoff, 0, kDay);
  limits.redirects = integer("redirects", limits.redirects, 0, 100);
  limits.allow_private = uri.get_bool("allow_private", limits.allow_private);
  options.decoding = read_decoding(uri);
  uri.refuse_unknown();
  return options;
}

struct OpenedUrl {
  UrlEntry entry;
  Decoded decoded;
};

class UrlsStream : public Stream {
 public:
  explicit UrlsStream(UrlsOptions options) : options_(std::move(options)) {
    if (!UrlList(options_.list, {}).next()) {
      throw Error(cat("no URL in the list ", options_.list.string()));
    }
  }

  ~UrlsStream() override { leave(); }

  std::optional<Sample> next() override {
    if (!ahead_) start();
    while (!is_stopped()) {
      auto opened = ahead_->take();
      if (!opened) break;
      auto& [entry, decoded] = *opened;
      place_ = entry.after;
      const auto key = entry.url.empty() ? cat(options_.list.string(), ':', entry.line) : entry.url;
      if (!decoded.picture) {
        skips_.add(key, decoded.failure.reason, decoded.failure.detail);
        continue;
      }
      Sample sample;
      sample.picture = std::move(*decoded.picture);
      sample.index = given_++;
      sample.label = std::move(entry.label);
      sample.key = key;
      return sample;
    }
    if (given_ == 0 && !is_stopped()) {
      throw Error(cat("no URL of the list ", options_.list.string(), " gives a picture (",
                      skips_.summary(), ")"));
    }
    return std::nullopt;
  }

  // "given line offset".
  std::string position() const override {
    return cat(given_, ' ', place_.line, ' ', place_.offset);
  }

  void seek(const std::string& position) override {
    const auto parts = split(position, ' ');
    const auto number = [&](std::size_t i) {
      const auto value = parts.size() == 3
                             ? parse_integer(parts[i], "a number in a position in a list of URLs")
                             : -1;
      if (value < 0) {
        throw Error(cat("'", position, "' is not a position in urls:", options_.list.string()));
      }
      return value;
    };
    const auto given = static_cast<std::uint64_t>(number(0));
    const UrlPlace place{number(1), number(2)};
    UrlList(options_.list, place);  // throws if there is no such place
    leave();
    place_ = place;
    given_ = given;
  }

  void stop() override {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    if (fetcher_) fetcher_->stop();
  }

  std::map<std::string, std::int64_t> skipped() const override { return skips_.counts(); }

 private:
  void start() {
    list_.emplace(options_.list, place_);
    auto fetcher = std::make_unique<UrlFetcher>(options_.limits, [this] { return list_->next(); });
    {
      const std::lock_guard lock(mutex_);
      fetcher_ = std::move(fetcher);
      if (stopped_) fetcher_->stop();
    }
    ahead_.emplace(
        options_.decoding.threads, kAheadBytes, [this] { return fetcher_->next(); },
        [this](Fetched&& fetched) { return open(std::move(fetched)); },
        [](const OpenedUrl& opened) { return weight(opened.decoded); });
  }

  void leave() {
    {
      const std::lock_guard lock(mutex_);
      if (fetcher_) fetcher_->stop();  // what the threads of ahead_ wait for
    }
    ahead_.reset();
    const std::lock_guard lock(mutex_);
    fetcher_.reset();
  }

  OpenedUrl open(Fetched fetched) const {
    OpenedUrl opened;
    opened.entry = std::move(fetched.entry);
    if (fetched.failure.reason.empty()) {
      opened.decoded = decode(fetched.bytes, options_.decoding);
    } else {
      opened.decoded.failure = std::move(fetched.failure);
    }
    return opened;
  }

  bool is_stopped() const {
    const std::lock_guard lock(mutex_);
    return stopped_;
  }

  const UrlsOptions options_;
  SkipLog skips_;
  UrlPlace place_;
  std::uint64_t given_ = 0;
  std::optional<UrlList> list_;  // read by the fetcher, from place_ on
  mutable std::mutex mutex_;     // of the two below, which stop() uses
  bool stopped_ = false;
  std::unique_ptr<UrlFetcher> fetcher_;
  std::optional<PullAhead<Fetched, OpenedUrl>> ahead_;  // its threads use the members above
};

}  // namespace

std::unique_ptr<Stream> open_urls(Uri& uri) {
  return std::make_unique<UrlsStream>(urls_options(uri));
}

}  // namespace riffle
