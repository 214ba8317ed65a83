// A library for LD_PRELOAD in which libjpeg is of a later version than the program was built for.

#include <cstddef>
#include <cstdio>

#include <dlfcn.h>
#include <jpeglib.h>

namespace {

constexpr int kLater = 10;

template <typename Struct>
void create(const char* name, Struct* jpeg, int version, std::size_t bytes) {
  using Create = void (*)(Struct*, int, std::size_t);
  reinterpret_cast<Create>(::dlsym(RTLD_NEXT, name))(jpeg, version - kLater, bytes);
}

}  // namespace

extern "C" {

void jpeg_CreateDecompress(j_decompress_ptr jpeg, int version, std::size_t bytes) {
  create("jpeg_CreateDecompress", jpeg, version, bytes);
}

void jpeg_CreateCompress(j_compress_ptr jpeg, int version, std::size_t bytes) {
  create("jpeg_CreateCompress", jpeg, version, bytes);
}

}  // extern "C"
