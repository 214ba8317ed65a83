#include "riffle/dist/libraries.h"

#include "riffle/base/text.h"
#ifdef RIFFLE_MPI
#include <mpi.h>
#endif
#ifdef RIFFLE_NCCL
#include <nccl.h>
#endif

namespace riffle {

std::vector<Library> dist_libraries() {
  Library mpi{"MPI", {}, "training on several ranks"};
#ifdef RIFFLE_MPI
  mpi.version = cat(MPI_VERSION, '.', MPI_SUBVERSION);
#ifdef OMPI_MAJOR_VERSION
  mpi.version += cat(" (Open MPI ", OMPI_MAJOR_VERSION, '.', OMPI_MINOR_VERSION, '.',
                     OMPI_RELEASE_VERSION, ')');
#endif
#endif
  std::vector<Library> libraries = {mpi};
#if RIFFLE_CUDA
  Library nccl{"NCCL", {}, "exchange from GPU to GPU on several ranks"};
#ifdef RIFFLE_NCCL
  nccl.version = cat(NCCL_MAJOR, '.', NCCL_MINOR, '.', NCCL_PATCH);
#endif
  libraries.push_back(nccl);
#endif
  return libraries;
}

}  // namespace riffle
