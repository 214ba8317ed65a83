#include <numeric>

#include "python/bindings/background.h"
#include "python/bindings/owned.h"

#include "riffle/augment/two_views.h"
#ifdef RIFFLE_CUDA
#include "python/bindings/views_gpu.h"
#endif

namespace riffle::python {
namespace {

class Views {
 public:
  Views(const AugmentConfig& config, std::uint64_t seed)
      : maker_(std::make_shared<Maker>(config, seed))
#ifdef RIFFLE_CUDA
        ,
        on_gpu_(config, seed, maker_->pool)
#endif
  {
  }

  at::Tensor make(const at::Tensor& pictures, std::uint64_t step) {
#ifdef RIFFLE_CUDA
    if (pictures.is_cuda()) {
      const py::gil_scoped_release release;
      const std::lock_guard lock(mutex_);
      if (on_gpu_.fits(pictures)) return on_gpu_(pictures, step);
    }
#endif
    return work_.run([maker = maker_, pictures, step] {
      std::vector<std::int64_t> rows(static_cast<std::size_t>(pictures.size(0)));
      std::iota(rows.begin(), rows.end(), 0);
      return maker->views(pictures.cpu(), rows, step).to(pictures.device());
    });
  }

 private:
  struct Maker {
    Maker(const AugmentConfig& config, std::uint64_t seed) : views(config, seed, pool) {}
    ThreadPool pool;
    TwoViews views;
  };
  std::shared_ptr<Maker> maker_;
#ifdef RIFFLE_CUDA
  std::mutex mutex_;
  ViewsGpu on_gpu_;
#endif
  Background work_;
};

using OwnedViews = Owned<Views>;

}  // namespace

void bind_views(py::module_& module) {
  py::class_<OwnedViews>(module, "TwoViews")
      .def(py::init([](const Settings& settings, std::uint64_t seed) {
        return OwnedViews("TwoViews",
                          std::make_shared<Views>(configured<AugmentConfig>(settings), seed));
      }))
      .def("__call__", [](const OwnedViews& views, const at::Tensor& pictures, std::uint64_t step) {
        return views->make(pictures, step);
      });
}

}  // namespace riffle::python
