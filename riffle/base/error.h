// The one exception type that riffle throws for anything a user can cause or meet.
//
// A message is one line, names the file, value or key at fault and says what would be valid. The
// program prints it and exits 2 for bad input or usage, 1 for a failure at run time (a full disk, a
// lost device).
#pragma once

#include <stdexcept>
#include <string>

namespace riffle {

enum class ErrorKind { bad_input, failure };

class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message, ErrorKind kind = ErrorKind::bad_input)
      : std::runtime_error(message), kind_(kind) {}

  ErrorKind kind() const { return kind_; }
  int exit_code() const { return kind_ == ErrorKind::bad_input ? 2 : 1; }

 private:
  ErrorKind kind_;
};

}  // namespace riffle
