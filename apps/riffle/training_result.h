// What `riffle train` and `riffle resume` print when they end.
#pragma once

#include <string>

#include "riffle/run/training.h"

namespace riffle {

// Prints a message on standard error and, with `json`, one object on standard output.
void print_training_result(const std::string& run, const TrainingResult& result, bool json);

}  // namespace riffle
