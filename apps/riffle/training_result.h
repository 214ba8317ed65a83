// What `riffle train` and `riffle resume` say at their end.
#pragma once

#include <string>

#include "riffle/run/training.h"

namespace riffle {

// With `json`, one object on standard output; a word for people on standard error in any case.
void print_training_result(const std::string& run, const TrainingResult& result, bool json);

}  // namespace riffle
