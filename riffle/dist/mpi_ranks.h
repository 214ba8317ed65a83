// Ranks that exchange over MPI (ranks.h), in builds that found one.
#pragma once

#include <string>

#include "riffle/dist/ranks.h"

namespace riffle {

// Returns all ranks of this process; the first call begins MPI, which ends with the process. Throws
// Error unless MPI knows of as many processes as the launcher started.
Ranks& mpi_ranks(int launched);

// See abort_other_ranks().
void abort_mpi_ranks(int exit_code);

}  // namespace riffle
