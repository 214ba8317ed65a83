// Streams of a GPU by c10's names, which builds without CUDA know too.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace riffle {

// Requires a GPU, as all functions here do. Returns it with its number.
inline c10::Device with_index(c10::Device device) {
  return device.has_index() ? device : c10::impl::VirtualGuardImpl(device.type()).getDevice();
}

inline c10::Stream default_stream(c10::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getDefaultStream(device);
}

// Returns a stream beside the default one.
inline c10::Stream side_stream(c10::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device);
}

}  // namespace riffle
