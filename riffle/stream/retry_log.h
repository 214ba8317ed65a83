// Says in the log that a source cannot be reached and is tried again: at once, after ten seconds,
// and then once a minute, with the time since it last worked; and that it works again.
//
// Used by one thread, but for lasted().
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "riffle/base/clock.h"
#include "riffle/base/log.h"
#include "riffle/base/text.h"

namespace riffle {

class RetryLog {
 public:
  explicit RetryLog(std::string source, std::function<void(const std::string&)> write = log_warning)
      : source_(std::move(source)), write_(std::move(write)) {}

  void failed(const std::string& why, Clock::time_point now = Clock::now()) {
    constexpr double kFirst = 10, kEvery = 60;
    if (since_.load() == kWorks) since_ = now;
    const double seconds = lasted(now);
    if (seconds < next_) return;
    next_ = seconds < kFirst ? kFirst : seconds + kEvery;
    write_(cat(source_, " cannot be reached (", why, "); retrying",
               seconds < 1 ? std::string() : cat(", for ", duration_text(seconds), " so far")));
  }
  void worked(Clock::time_point now = Clock::now()) {
    if (since_.load() == kWorks) return;
    write_(cat(source_, " is reached again, after ", duration_text(lasted(now))));
    since_ = kWorks;
    next_ = 0;
  }
  // Returns the seconds since the first failure after it last worked; 0 while it works. Safe from
  // any thread.
  double lasted(Clock::time_point now = Clock::now()) const {
    const Clock::time_point since = since_;
    return since == kWorks ? 0 : std::chrono::duration<double>(now - since).count();
  }

 private:
  static constexpr Clock::time_point kWorks{};

  const std::string source_;
  const std::function<void(const std::string&)> write_;
  // Of the first failure since it last worked.
  std::atomic<Clock::time_point> since_ = kWorks;
  // Seconds after it, of the next line.
  double next_ = 0;
};

}  // namespace riffle
