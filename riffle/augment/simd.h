// RIFFLE_SIMD in front of a function compiles it once more for AVX2 and lets the processor choose
// when the program starts.
//
// Results stay the same bit by bit: both versions do the same operations in the same order, and
// AVX2 without FMA has no fused multiply-add that would round differently (the reason why AVX-512,
// which has, is not on the list). Clang and sanitizers do not support how the choice is made, so
// they see the plain version.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define RIFFLE_SIMD __attribute__((target_clones("avx2", "default")))
#else
#define RIFFLE_SIMD
#endif
