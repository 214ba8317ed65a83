#include "riffle/dist/ranks_gpu.h"

#include <cstring>
#include <exception>
#include <map>
#include <optional>
#include <stdexcept>

#include <ATen/ATen.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>
#ifdef RIFFLE_NCCL
#include <nccl.h>
#endif

#include "riffle/base/error.h"
#include "riffle/base/log.h"
#include "riffle/base/text.h"
#include "riffle/tensors/check_cuda.h"

namespace riffle {
namespace {

[[maybe_unused]] std::string gpu_uuid() {
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, c10::cuda::current_device()),
             "reading the properties of the GPU");
  return {properties.uuid.bytes, sizeof(properties.uuid.bytes)};
}

// Returns why ranks cannot exchange from GPU to GPU, the same on all; empty if they can.
std::string obstacle([[maybe_unused]] Ranks& ranks) {
#ifndef RIFFLE_NCCL
  return "this riffle was built without NCCL";
#else
  std::map<std::string, std::size_t> used_by;
  const auto uuids = ranks.gather_bytes(gpu_uuid());
  for (std::size_t rank = 0; rank < uuids.size(); ++rank) {
    const auto [other, is_new] = used_by.emplace(uuids[rank], rank);
    if (is_new) continue;
    return cat("ranks ", other->second, " and ", rank,
               " use the same GPU; --device cuda:{local_rank} gives each one of its own");
  }
  return {};
#endif
}

#ifdef RIFFLE_NCCL

void check_nccl(ncclResult_t result, const char* what) {
  if (result == ncclSuccess) return;
  throw Error(cat(what, " failed in NCCL: ", ncclGetErrorString(result),
                  "; with NCCL_DEBUG=WARN in the environment it says why"),
              ErrorKind::failure);
}

ncclDataType_t nccl_type(const at::Tensor& values) {
  switch (values.scalar_type()) {
    case at::kFloat:
      return ncclFloat32;
    case at::kDouble:
      return ncclFloat64;
    case at::kBFloat16:
      return ncclBfloat16;
    case at::kLong:
      return ncclInt64;
    default:
      throw std::logic_error(cat("ranks: cannot add up ", values.toString()));
  }
}

cudaStream_t current_stream() { return c10::cuda::getCurrentCUDAStream().stream(); }

// Calls between its construction and end() are one operation.
class NcclGroup {
 public:
  NcclGroup() { check_nccl(ncclGroupStart(), "an exchange between GPUs"); }
  ~NcclGroup() {
    if (!ended_) ncclGroupEnd();
  }
  NcclGroup(const NcclGroup&) = delete;
  void end() {
    ended_ = true;
    check_nccl(ncclGroupEnd(), "an exchange between GPUs");
  }

 private:
  bool ended_ = false;
};

class RanksGpu : public Ranks {
 public:
  explicit RanksGpu(Ranks& below)
      : Ranks(below.rank(), below.size(), below.local_rank(), below.local_size()), below_(below) {
    ncclUniqueId id{};
    if (first()) check_nccl(ncclGetUniqueId(&id), "to begin an exchange between GPUs");
    const std::string bytes =
        below_.from_first(std::string(reinterpret_cast<const char*>(&id), sizeof(id)));
    std::memcpy(&id, bytes.data(), sizeof(id));
    check_nccl(ncclCommInitRank(&comm_, size(), id, rank()), "to join the GPUs of all ranks");
    // Connections are made by the first exchange: if that cannot be, it is told here.
    sum(at::ones({1}, at::TensorOptions().device(at::kCUDA)));
    c10::cuda::device_synchronize();
  }

  ~RanksGpu() override {
    // A rank that failed must not wait for the others, which may be in the middle of an exchange.
    if (std::uncaught_exceptions() > 0) {
      ncclCommAbort(comm_);
    } else {
      ncclCommDestroy(comm_);
    }
  }

  bool on_gpu() const override { return true; }

  at::Tensor sum(const at::Tensor& values) override {
    if (!values.is_cuda()) return below_.sum(values);
    const at::Tensor total = values.clone(at::MemoryFormat::Contiguous);
    add_up({total});
    return total;
  }

  void add_up(const std::vector<at::Tensor>& tensors) override {
    if (tensors.empty()) return;
    if (!tensors.front().is_cuda()) return below_.add_up(tensors);
    NcclGroup group;
    for (const at::Tensor& tensor : tensors) {
      if (!tensor.is_cuda() || !tensor.is_non_overlapping_and_dense()) {
        throw std::logic_error("ranks: a sum needs dense tensors, all on the GPU");
      }
      void* values = tensor.mutable_data_ptr();
      check_nccl(ncclAllReduce(values, values, static_cast<std::size_t>(tensor.numel()),
                               nccl_type(tensor), ncclSum, comm_, current_stream()),
                 "a sum over the GPUs of all ranks");
    }
    group.end();
  }

  at::Tensor gather(const at::Tensor& rows) override {
    if (!rows.is_cuda()) return below_.gather(rows);
    if (alone()) return rows;
    const at::Tensor own = rows.contiguous();
    std::vector<std::int64_t> shape = own.sizes().vec();
    shape[0] *= size();
    at::Tensor all = at::empty(shape, own.options());
    check_nccl(ncclAllGather(own.const_data_ptr(), all.mutable_data_ptr(), own.nbytes(), ncclUint8,
                             comm_, current_stream()),
               "a gather from the GPUs of all ranks");
    return all;
  }

  at::Tensor exchange(const at::Tensor& rows, std::span<const std::int64_t> send,
                      std::span<const std::int64_t> receive) override {
    if (!rows.is_cuda()) return below_.exchange(rows, send, receive);
    if (alone()) return rows;
    const at::Tensor own = rows.contiguous();
    std::int64_t row_bytes = static_cast<std::int64_t>(own.element_size());
    for (std::int64_t dim = 1; dim < own.dim(); ++dim) row_bytes *= own.size(dim);
    std::vector<std::int64_t> shape = own.sizes().vec();
    shape[0] = 0;
    for (const std::int64_t count : receive) shape[0] += count;
    at::Tensor got = at::empty(shape, own.options());
    const auto* from = static_cast<const char*>(own.const_data_ptr());
    auto* to = static_cast<char*>(got.mutable_data_ptr());
    NcclGroup group;
    for (int peer = 0; peer < size(); ++peer) {
      const auto sent = static_cast<std::size_t>(send[static_cast<std::size_t>(peer)] * row_bytes);
      const auto received =
          static_cast<std::size_t>(receive[static_cast<std::size_t>(peer)] * row_bytes);
      if (sent > 0) {
        check_nccl(ncclSend(from, sent, ncclUint8, peer, comm_, current_stream()),
                   "an exchange between GPUs");
      }
      if (received > 0) {
        check_nccl(ncclRecv(to, received, ncclUint8, peer, comm_, current_stream()),
                   "an exchange between GPUs");
      }
      from += sent;
      to += received;
    }
    group.end();
    return got;
  }

  std::unique_ptr<Sum> begin_sum(const at::Tensor& values) override {
    return below_.begin_sum(values);
  }
  at::Tensor gather_rows(const at::Tensor& rows) override { return below_.gather_rows(rows); }
  std::vector<std::string> gather_bytes(const std::string& bytes) override {
    return below_.gather_bytes(bytes);
  }
  void wait_for_all() override { below_.wait_for_all(); }
  void abort(int exit_code) override { below_.abort(exit_code); }

 protected:
  void set_working(bool working) override {
    working_.reset();
    if (working) working_.emplace(below_);
  }

 private:
  Ranks& below_;
  std::optional<Working> working_;
  ncclComm_t comm_ = nullptr;
};

#endif

}  // namespace

std::unique_ptr<Ranks> ranks_on_gpu(Ranks& ranks) {
  const std::string why_not = obstacle(ranks);
  if (!why_not.empty()) {
    if (ranks.first()) log_info(cat("what ranks exchange goes through host memory: ", why_not));
    return nullptr;
  }
#ifdef RIFFLE_NCCL
  return std::make_unique<RanksGpu>(ranks);
#else
  return nullptr;
#endif
}

}  // namespace riffle
