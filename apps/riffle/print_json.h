// How commands print their result with --json: one object on one line of standard output.
#pragma once

#include <iostream>

#include <nlohmann/json.hpp>

namespace riffle {

// Labels, paths and names of files may be any bytes. What is not UTF-8 is printed as U+FFFD.
inline void print_json_line(const nlohmann::ordered_json& json) {
  std::cout << json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
}

}  // namespace riffle
