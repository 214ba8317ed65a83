// How commands print their results: everything that apps/riffle writes to standard output, apart
// from the help, goes through here.
//
// Labels, paths and names of files may be any bytes; none reaches a terminal that could steer it.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace riffle {

// Prints one line, as printable() has it, and flushes it.
void print_line(const std::string& line);
// Prints text of several lines, each as print_line() does. Requires that names in it have no line
// ends.
void print_lines(const std::string& text);

// Prints the result of --json: one object on one line. What is not UTF-8 becomes U+FFFD.
void print_json_line(const nlohmann::ordered_json& json);

}  // namespace riffle
