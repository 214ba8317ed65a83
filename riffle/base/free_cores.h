// How much of the machine a program gets beside the others that run on it.
#pragma once

namespace riffle {

// Returns how many cores' worth of time threads of this process get now, with one on each core:
// measured for `seconds`, in which it keeps them all busy. Other programs, a limit of the container
// and a busy host make it less than the number of cores.
double measure_free_cores(double seconds = 0.1);

// Returns the number of threads that suits: more of them than free cores would wait for each other.
int threads_for(double free_cores);

}  // namespace riffle
