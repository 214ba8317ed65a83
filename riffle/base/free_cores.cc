#include "riffle/base/free_cores.h"

#include <algorithm>
#include <numeric>
#include <thread>
#include <vector>

#include <time.h>

#include "riffle/base/clock.h"

namespace riffle {
namespace {

// Returns the time that this thread has computed so far.
double thread_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

double measure_free_cores(double seconds) {
  std::vector<double> got(std::max(1u, std::thread::hardware_concurrency()));
  std::vector<std::thread> threads;
  for (double& mine : got) {
    threads.emplace_back([&mine, seconds] {
      const auto begun = Clock::now();
      const double before = thread_seconds();
      while (seconds_since(begun) < seconds) {
      }
      mine = (thread_seconds() - before) / seconds_since(begun);
    });
  }
  for (auto& thread : threads) thread.join();
  return std::accumulate(got.begin(), got.end(), 0.0);
}

// A quarter of a core for what every system does beside.
int threads_for(double free_cores) { return std::max(1, static_cast<int>(free_cores + 0.25)); }

}  // namespace riffle
