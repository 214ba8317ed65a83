// Items that only come one after the other (members of an archive, downloads, files that arrive),
// worked on by threads ahead of the reader and handed out in order.
//
// `pull` is called by one thread at a time, in order; it gives nothing at the end, then and ever
// after. `work` is called from several threads at once. Memory is bounded as in ReadAhead. A pull
// that waits must be made to return before the destructor, which waits for the items in hand. An
// exception thrown by either comes out of the take() of that item.
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

  // 0 threads: all is done in take(), nothing ahead.
  PullAhead(int threads, std::uint64_t most_bytes, Pull pull, Work work, Weight weight)
      : pull_(std::move(pull)),
        work_(std::move(work)),
        ahead_(
            threads, most_bytes, [this](std::int64_t i) { return one(i); },
            [weight](const std::optional<Result>& result) {
              return result ? weight(*result) : kEndWeight;
            }) {
    ahead_.start(0, std::numeric_limits<std::int64_t>::max());
  }

  // The following result, or nothing at the end.
  std::optional<Result> take() { return ahead_.take(); }

 private:
  // So that the threads do not go on past the end for ever.
  static constexpr std::uint64_t kEndWeight = std::uint64_t{1} << 20;

  std::optional<Result> one(std::int64_t i) {
    auto item = pull_in_turn(i);
    if (!item) return std::nullopt;
    return work_(std::move(*item));
  }

  std::optional<Item> pull_in_turn(std::int64_t i) {
    std::unique_lock lock(mutex_);
    is_turn_.wait(lock, [&] { return pulled_ == i; });
    // The turn goes on to the next, whether pull gives or throws.
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
