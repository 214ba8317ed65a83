// How the process treats its memory.
#pragma once

namespace riffle {

// Keeps freed memory for the next allocation instead of giving it back to the system. A training
// step frees and takes the same large blocks every time; without this the system clears their pages
// again at each step. Call it from main() before allocating much; the process then never shrinks.
void keep_freed_memory();

// Lets LibTorch take GPU memory in segments that grow, unless its environment variable says
// otherwise: the memory of a recorded graph then has no holes. Call it from main() before anything
// uses a GPU.
void let_gpu_memory_grow();

}  // namespace riffle
