// Sixteen bytes of float32 or bfloat16 numbers, read, widened to float, and written in one go.
#pragma once

#include <cuda_bf16.h>

namespace riffle {

template <typename T>
struct Pack;

template <>
struct Pack<float> {
  static constexpr int kSize = 4;
  float4 raw;
  __device__ void read(float* out) const {
    out[0] = raw.x, out[1] = raw.y, out[2] = raw.z, out[3] = raw.w;
  }
  __device__ void write(const float* in) { raw = make_float4(in[0], in[1], in[2], in[3]); }
};

template <>
struct Pack<__nv_bfloat16> {
  static constexpr int kSize = 8;
  uint4 raw;
  __device__ void read(float* out) const {
    const unsigned words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      out[2 * i] = __uint_as_float(words[i] << 16);
      out[2 * i + 1] = __uint_as_float(words[i] & 0xFFFF0000u);
    }
  }
  __device__ void write(const float* in) {
    unsigned words[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const __nv_bfloat162 pair = __floats2bfloat162_rn(in[2 * i], in[2 * i + 1]);
      words[i] = *reinterpret_cast<const unsigned*>(&pair);
    }
    raw = make_uint4(words[0], words[1], words[2], words[3]);
  }
};

template <typename T>
__device__ Pack<T> load(const T* from) {
  Pack<T> pack;
  pack.raw = *reinterpret_cast<const decltype(pack.raw)*>(from);
  return pack;
}

template <typename T>
__device__ void store(T* to, const float* values) {
  Pack<T> pack;
  pack.write(values);
  *reinterpret_cast<decltype(pack.raw)*>(to) = pack.raw;
}

}  // namespace riffle
