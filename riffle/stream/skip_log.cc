#include "riffle/stream/skip_log.h"

#include "riffle/base/text.h"

namespace riffle {
namespace {

constexpr std::int64_t kNamedPerReason = 3;

bool is_power_of_ten(std::int64_t n) {
  while (n % 10 == 0) n /= 10;
  return n == 1;
}

}  // namespace

void SkipLog::add(const std::string& item, const std::string& reason, const std::string& detail) {
  const std::int64_t count = ++counts_[reason];
  if (count <= kNamedPerReason) {
    write_(cat("skipped ", item, ": ", reason, detail.empty() ? "" : " (" + detail + ")"));
  } else if (is_power_of_ten(count)) {
    write_(cat("skipped ", count, " items so far: ", reason, " (latest: ", item, ")"));
  }
}

std::string SkipLog::summary() const {
  std::string text;
  for (const auto& [reason, count] : counts_) {
    text += cat(text.empty() ? "" : ", ", count, ' ', reason);
  }
  return text;
}

}  // namespace riffle
