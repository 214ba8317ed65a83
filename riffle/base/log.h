// Messages on standard error: what happened, warnings, and one progress line that is rewritten in
// place.
//
// Names in messages may come from anywhere: they are shown as printable() has them. Thread-safe.
// Standard output is left to results (`--json`).
#pragma once

#include <string>

namespace riffle {

enum class LogLevel { quiet, warnings, info, debug };
void set_log_level(LogLevel level);

void log_debug(const std::string& message);
void log_info(const std::string& message);
void log_warning(const std::string& message);

// Shows the state of long work. On a terminal, replaces the previous progress line; elsewhere,
// prints a plain line, at most one every ten seconds. `finish_progress` keeps the last line.
void show_progress(const std::string& line);
void finish_progress();

}  // namespace riffle
