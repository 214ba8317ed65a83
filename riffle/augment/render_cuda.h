// Carries out view plans on a GPU: the same operations as render_view(), for a whole batch.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "riffle/augment/view_layout.h"
#include "riffle/augment/view_plan.h"
#include "riffle/tensors/kernels_cuda.h"

namespace riffle::render_cuda {

struct Job {
  const std::uint8_t* pictures;  // [count, height, width, 3]
  int count;
  int height;
  int width;
  const ViewPlan* plans;  // [views]; view v is made from picture v % count
  int views;
  int size;
  ViewLayout layout;
  Number number;
  // What no view covers, the border of `folded`, is left as it is.
  void* out;
};

// Returns whether a group of multiprocessors of the current device has enough memory for one view.
bool fits(int size, int height, int width);

// Queues the kernel on `stream` and returns the status of the launch. Every pointer is to device
// memory.
cudaError_t render(const Job& job, cudaStream_t stream);

}  // namespace riffle::render_cuda
