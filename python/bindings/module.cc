// The extension riffle._riffle. The package imports it after torch, whose libraries it uses.
#include "python/bindings/background.h"

#include "riffle/base/error.h"
#include "riffle/base/log.h"

namespace riffle::python {

PYBIND11_MODULE(_riffle, module) {
  auto& error = py::register_exception<Error>(module, "Error", PyExc_RuntimeError);
  error.attr("__module__") = "riffle";
  error.attr("__doc__") =
      "What riffle raises for anything that a user can cause or meet: one line that names the "
      "file, value or key at fault and says what would be valid.";
  // A program that uses riffle hears of what goes wrong, not of what goes on.
  set_log_level(LogLevel::warnings);

  module.def("wait_for_abandoned", &Background::wait_for_abandoned);
  bind_streams(module);
  bind_buffer(module);
  bind_loader(module);
  bind_views(module);
  bind_nearest(module);
  bind_encoder(module);
  bind_learner(module);
  bind_run(module);
}

}  // namespace riffle::python
