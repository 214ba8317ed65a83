// One program for all targets: riffle_fuzz TARGET [options of libFuzzer] FOLDER...

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "fuzz/targets.h"

#include "riffle/base/error.h"

namespace {
const riffle::fuzz::Target* chosen = nullptr;
}

// Takes the name of the target out of the arguments.
extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  try {
    chosen = &riffle::fuzz::find_target(*argc > 1 ? (*argv)[1] : "");
  } catch (const riffle::Error& error) {
    std::fprintf(stderr, "riffle_fuzz: %s\n", error.what());
    std::exit(2);
  }
  for (int i = 1; i < *argc; ++i) (*argv)[i] = (*argv)[i + 1];
  --*argc;
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  riffle::fuzz::fuzz_one(*chosen, std::as_bytes(std::span(data, size)));
  return 0;
}
