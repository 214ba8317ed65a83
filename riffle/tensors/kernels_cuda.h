// What the CUDA kernels of all rooms share.
#pragma once

namespace riffle {

// The type of the numbers that a kernel reads and writes.
enum class Number : int { float32, bfloat16 };

// Threads in a warp.
inline constexpr int kWarp = 32;

}  // namespace riffle
