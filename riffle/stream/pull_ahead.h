// Items that only come one after the other (members of an archive, downloads, files that arrive),
// processed by threads ahead of the reader and handed out in order.
//
// `pull` is called by one thread at a time, in order; at the end it returns nothing, and does so
// ever after. `work` is called from several threads at once. Memory is bounded as in ReadAhead. The
// caller must make a waiting pull return before the destructor, which waits for the items in hand.
// An exception thrown by either is rethrown by the take() of that item.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <mutex>
#include <optional>
#include <utility>

#include "riffle/stream/read_ahead.h"

namespace riffle {

template <typename Item, typename Result>
class PullAhead {
 public:
  using Pull = std::function<std::optional<Item>()>;
  using Work = std::function<Result(Item&&)>;
  using Weight = std::function<std::uint64_t(const Result&)>;

  // With 0 threads, take() does all the work itself.
  PullAhead(int threads, std::uint64_t max_bytes, Pull pull, Work work, Weight weight)
      : pull_(std::move(pull)),
        work_(std::move(work)),
        ahead_(
            threads, max_bytes, [this](std::int64_t i) { return one(i); },
            [weight](const std::optional<Result>& result) {
              return result ? weight(*result) : kEndWeight;
            }) {
    ahead_.start(0, std::numeric_limits<std::int64_t>::max());
  }

  // Returns the next result, or nothing at the end.
  std::optional<Result> take() { return ahead_.take(); }

 private:
  // Keeps the threads from running on past the end.
  static constexpr std::uint64_t kEndWeight = std::uint64_t{1} << 20;

  std::optional<Result> one(std::int64_t i) {
    auto item = pull_in_turn(i);
    if (!item) return std::nullopt;
    return work_(std::move(*item));
  }

  std::optional<Item> pull_in_turn(std::int64_t i) {
    std::unique_lock lock(mutex_);
    is_turn_.wait(lock, [&] { return pulled_ == i; });
    // Passes the turn on, whether pull returns or throws.
    struct Turn {
      PullAhead& ahead;
      ~Turn() {
        ++ahead.pulled_;
        ahead.is_turn_.notify_all();
      }
    } turn{*this};
    return pull_();
  }

  const Pull pull_;
  const Work work_;
  std::mutex mutex_;
  std::condition_variable is_turn_;
  std::int64_t pulled_ = 0;
  ReadAhead<std::optional<Result>> ahead_;  // last: its threads use the members above
};

}  // namespace riffle
