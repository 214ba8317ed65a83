// Says in the log that a source cannot be reached and is tried again: at once, after ten seconds,
// and then once a minute, with the time since it last worked; and that it works again.
//
// Used by one thread.
#pragma once

#include <functional>
#include <optional>
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
    if (!since_) since_ = now;
    const double lasted = std::chrono::duration<double>(now - *since_).count();
    if (lasted < next_) return;
    next_ = lasted < kFirst ? kFirst : lasted + kEvery;
    write_(cat(source_, " cannot be reached (", why, "); retrying",
               lasted < 1 ? std::string() : cat(", for ", duration_text(lasted), " so far")));
  }
  void worked(Clock::time_point now = Clock::now()) {
    if (!since_) return;
    const double lasted = std::chrono::duration<double>(now - *since_).count();
    write_(cat(source_, " is reached again, after ", duration_text(lasted)));
    since_.reset();
    next_ = 0;
  }

 private:
  const std::string source_;
  const std::function<void(const std::string&)> write_;
  // Of the first failure since it last worked.
  std::optional<Clock::time_point> since_;
  // Seconds after it, of the next line.
  double next_ = 0;
};

}  // namespace riffle
