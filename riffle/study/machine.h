// What a run was made on, in words.
#pragma once

#include <string>

namespace riffle {

// Returns processor, cores and graphics cards of this machine, as far as the system tells.
std::string machine_text();

}  // namespace riffle
