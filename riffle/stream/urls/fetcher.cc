#include "riffle/stream/urls/fetcher.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "riffle/base/error.h"
#include "riffle/stream/decoding.h"
#include "riffle/stream/urls/transfer.h"

namespace riffle {
namespace {

// Entries of the list that are read ahead, so that a slow host does not hold up the others.
constexpr std::size_t kWindow = 256;

void prepare_curl() {
  static const CURLcode kReady = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (kReady != CURLE_OK) throw Error("libcurl cannot be started", ErrorKind::failure);
}

}  // namespace

class UrlFetcher::Loop {
 public:
  Loop(const FetchLimits& limits, Entries entries) : limits_(limits), entries_(std::move(entries)) {
    prepare_curl();
    multi_ = curl_multi_init();
    if (multi_ == nullptr) throw std::bad_alloc();
    curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, static_cast<long>(limits.connections));
    thread_ = std::thread([this] { run(); });
  }

  ~Loop() {
    stop();
    thread_.join();
    curl_multi_cleanup(multi_);
  }

  std::optional<Fetched> next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stopping_ || ended_ || failure_ || !ready_.empty(); });
    if (stopping_) return std::nullopt;
    if (ready_.empty() && failure_) std::rethrow_exception(failure_);
    if (ready_.empty()) return std::nullopt;
    auto fetched = std::move(ready_.front());
    ready_.pop_front();
    ready_bytes_ -= fetched.bytes.size();
    lock.unlock();
    curl_multi_wakeup(multi_);
    return fetched;
  }

  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    curl_multi_wakeup(multi_);
  }

 private:
  using Clock = UrlTransfer::Clock;
  using State = UrlTransfer::State;

  void run() {
    try {
      fetch();
    } catch (...) {  // out of a thread it would end the program
      const std::lock_guard lock(mutex_);
      failure_ = std::current_exception();
    }
    changed_.notify_all();
    for (const auto& [easy, transfer] : active_) curl_multi_remove_handle(multi_, easy);
    active_.clear();
    window_.clear();
  }

  void fetch() {
    proxies_ = proxy_addresses();
    while (!is_stopping()) {
      fill_window();
      begin_transfers();
      int running = 0;
      curl_multi_perform(multi_, &running);
      const bool ended = end_transfers();
      const bool handed_over = hand_over();
      if (ended || handed_over) continue;  // others may begin now
      curl_multi_poll(multi_, nullptr, 0, milliseconds_to_wait(), nullptr);
    }
  }

  bool is_stopping() {
    const std::lock_guard lock(mutex_);
    return stopping_;
  }

  void fill_window() {
    {
      const std::lock_guard lock(mutex_);
      if (ready_.size() >= kWindow) return;
    }
    while (window_.size() < kWindow && !list_ended_) {
      auto entry = entries_();
      if (entry) {
        window_.emplace_back(std::move(*entry), limits_, proxies_);
      } else {
        list_ended_ = true;
      }
    }
  }

  std::size_t held_bytes() {
    std::size_t held = 0;
    for (const auto& transfer : window_) held += transfer.held_bytes();
    const std::lock_guard lock(mutex_);
    return held + ready_bytes_;
  }

  // Returns whether the reader, once it asks, has to wait for the front: nothing else is ready.
  bool reader_waits_for_the_front() {
    const std::lock_guard lock(mutex_);
    return ready_.empty();
  }

  void begin_transfers() {
    const bool room = held_bytes() < kAheadBytes;
    const bool front = room || reader_waits_for_the_front();
    const auto now = Clock::now();
    retry_at_ = Clock::time_point::max();
    for (auto& transfer : window_) {
      if (active_.size() >= static_cast<std::size_t>(limits_.connections)) return;
      if (!(room || (front && &transfer == &window_.front()))) return;
      if (transfer.state() != State::waiting) continue;
      if (transfer.not_before() > now) {
        retry_at_ = std::min(retry_at_, transfer.not_before());
        continue;
      }
      auto& of_host = active_of_host_[transfer.host()];
      if (of_host >= limits_.per_host) continue;
      auto* const easy = transfer.begin();
      if (curl_multi_add_handle(multi_, easy) != CURLM_OK) {
        transfer.end(CURLE_FAILED_INIT);
        continue;
      }
      ++of_host;
      active_.emplace(easy, &transfer);
    }
  }

  bool end_transfers() {
    bool any = false;
    int left = 0;
    while (auto* const message = curl_multi_info_read(multi_, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      const auto result = message->data.result;
      auto* const easy = message->easy_handle;
      curl_multi_remove_handle(multi_, easy);  // `message` is gone
      auto& transfer = *active_.extract(easy).mapped();
      const auto of_host = active_of_host_.find(transfer.host());
      if (--of_host->second == 0) active_of_host_.erase(of_host);
      transfer.end(result);
      any = true;
    }
    return any;
  }

  bool hand_over() {
    const std::lock_guard lock(mutex_);
    const auto before = ready_.size();
    while (!window_.empty() && window_.front().state() == State::done) {
      ready_.push_back(window_.front().take());
      ready_bytes_ += ready_.back().bytes.size();
      window_.pop_front();
    }
    ended_ = list_ended_ && window_.empty();
    if (ended_ || !ready_.empty()) changed_.notify_all();
    return ready_.size() > before;
  }

  // Transfers and the reader wake us; only a retry that is due does not.
  int milliseconds_to_wait() const {
    constexpr std::chrono::milliseconds kLongest{1000};
    const auto now = Clock::now();
    if (retry_at_ <= now) return 0;
    return static_cast<int>(std::min(kLongest, std::chrono::ceil<std::chrono::milliseconds>(
                                                   std::min(retry_at_, now + kLongest) - now))
                                .count());
  }

  const FetchLimits limits_;
  const Entries entries_;
  CURLM* multi_ = nullptr;

  // Used by the thread alone.
  std::vector<std::string> proxies_;
  std::list<UrlTransfer> window_;  // in the order of the list
  std::map<CURL*, UrlTransfer*> active_;
  std::map<std::string, int> active_of_host_;
  Clock::time_point retry_at_{};  // the soonest
  bool list_ended_ = false;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Fetched> ready_;
  std::size_t ready_bytes_ = 0;
  bool stopping_ = false, ended_ = false;
  std::exception_ptr failure_;
  std::thread thread_;
};

UrlFetcher::UrlFetcher(const FetchLimits& limits, Entries entries)
    : loop_(std::make_unique<Loop>(limits, std::move(entries))) {}

UrlFetcher::~UrlFetcher() = default;

std::optional<Fetched> UrlFetcher::next() { return loop_->next(); }

void UrlFetcher::stop() { loop_->stop(); }

}  // namespace riffle
