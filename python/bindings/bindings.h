// What the files of the extension share: a bind_NAME() for each concept, and conversions.
//
// The extension is thin: it gives C++ classes to the Python package `riffle`, which checks
// arguments and explains. Tensors cross without a copy. Pictures are [n, height, width, 3] here;
// the package turns them into torch's order.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include "riffle/base/fields.h"

namespace riffle::python {

namespace py = pybind11;

// Configuration keys with their values as text.
using Settings = std::vector<std::pair<std::string, std::string>>;

// Sets the fields of a configuration struct. Throws Error for an unknown key, naming the nearest.
template <typename Config>
Config configured(const Settings& settings) {
  Config config;
  Fields fields;
  config.describe(fields);
  for (const auto& [key, value] : settings) fields.set(key, value);
  return config;
}

void bind_streams(py::module_& module);
void bind_buffer(py::module_& module);
void bind_loader(py::module_& module);
void bind_views(py::module_& module);
void bind_nearest(py::module_& module);
void bind_encoder(py::module_& module);
void bind_learner(py::module_& module);
void bind_run(py::module_& module);

}  // namespace riffle::python
