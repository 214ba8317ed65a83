// The extension riffle._riffle. The package imports it after torch, whose libraries it uses.
#include <exception>
#include <stdexcept>
#include <string_view>

#include "python/bindings/background.h"

#include "riffle/base/error.h"
#include "riffle/base/log.h"

namespace riffle::python {
namespace {

PyObject* error_type = nullptr;  // riffle.Error

}  // namespace

PYBIND11_MODULE(_riffle, module) {
  auto& error = py::register_local_exception<Error>(module, "Error", PyExc_RuntimeError);
  error_type = error.ptr();
  error.attr("__module__") = "riffle";
  // A message may name a file, and names need not be UTF-8.
  py::register_local_exception_translator([](std::exception_ptr thrown) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Error& refused) {
      const std::string_view text = refused.what();
      const auto message = py::reinterpret_steal<py::object>(PyUnicode_DecodeUTF8(
          text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace"));
      PyErr_SetObject(error_type, message.ptr());
    }
  });
  // What no C++ program should ask for, such as a slot that does not exist, a user of Python may.
  // Thrown from here, it is translated as any Error.
  py::register_local_exception_translator([](std::exception_ptr thrown) {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::logic_error& refused) {
      throw Error(refused.what());
    }
  });
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
