#include "riffle/base/log.h"

#include <chrono>
#include <cstdio>
#include <mutex>

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include "riffle/base/text.h"

namespace riffle {
namespace {

using Clock = std::chrono::steady_clock;

struct Console {
  std::mutex mutex;
  std::shared_ptr<spdlog::logger> logger = [] {
    auto created = spdlog::stderr_color_mt("riffle");
    created->set_pattern("%^%H:%M:%S%$ %v");
    return created;
  }();
  LogLevel level = LogLevel::info;
  bool terminal = isatty(STDERR_FILENO) != 0;
  bool line_open = false;
  Clock::time_point last_plain_line;
};

Console& console() {
  static Console instance;
  return instance;
}

void end_open_line(Console& out) {
  if (!out.line_open) return;
  std::fputc('\n', stderr);
  out.line_open = false;
}

void write(LogLevel needed, spdlog::level::level_enum severity, const std::string& message) {
  Console& out = console();
  const std::lock_guard lock(out.mutex);
  if (out.level < needed) return;
  end_open_line(out);
  out.logger->log(severity, spdlog::string_view_t(printable(message)));
}

}  // namespace

void set_log_level(LogLevel level) {
  Console& out = console();
  const std::lock_guard lock(out.mutex);
  out.level = level;
  out.logger->set_level(level == LogLevel::debug ? spdlog::level::debug : spdlog::level::info);
}

void log_debug(const std::string& message) {
  write(LogLevel::debug, spdlog::level::debug, message);
}
void log_info(const std::string& message) { write(LogLevel::info, spdlog::level::info, message); }
void log_warning(const std::string& message) {
  write(LogLevel::warnings, spdlog::level::warn, "warning: " + message);
}

void show_progress(const std::string& line) {
  Console& out = console();
  const std::lock_guard lock(out.mutex);
  if (out.level < LogLevel::info) return;
  if (out.terminal) {
    std::fprintf(stderr, "\r\033[K%s", printable(line).c_str());
    std::fflush(stderr);
    out.line_open = true;
    return;
  }
  const auto now = Clock::now();
  if (now - out.last_plain_line < std::chrono::seconds(10)) return;
  out.last_plain_line = now;
  std::fprintf(stderr, "%s\n", printable(line).c_str());
}

void finish_progress() {
  Console& out = console();
  const std::lock_guard lock(out.mutex);
  end_open_line(out);
}

}  // namespace riffle
