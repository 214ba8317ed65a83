// RIFFLE_WIDEST before a function compiles it for the widest vectors of common machines and lets
// the processor choose when the program starts. Sanitizers do not get along with the way the choice
// is made, so they see the plain version.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define RIFFLE_WIDEST __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define RIFFLE_WIDEST
#endif
