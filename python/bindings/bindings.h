// What the files of the extension share: a bind_NAME() for each concept, and conversions.
//
// The extension is thin: it gives C++ classes to the Python package `riffle`, which checks
// arguments and explains. Tensors cross without a copy. Pictures are [n, height, width, 3] here;
// the package turns them into torch's order.
#pragma once

#include <compare>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include "riffle/base/error.h"
#include "riffle/base/fields.h"
#include "riffle/base/text.h"

namespace riffle::python {

namespace py = pybind11;

// Returns what str() makes of an object as one line, whatever is in it. Requires the GIL.
inline std::string line_of(py::handle object) {
  const auto text = py::reinterpret_steal<py::object>(PyObject_Str(object.ptr()));
  const auto encoded = py::reinterpret_steal<py::object>(
      text ? PyUnicode_AsEncodedString(text.ptr(), "utf-8", "backslashreplace") : nullptr);
  if (!encoded) {
    PyErr_Clear();
    return "(no text)";
  }
  return printable(
      {PyBytes_AsString(encoded.ptr()), static_cast<std::size_t>(PyBytes_Size(encoded.ptr()))});
}

// A text that need not be UTF-8, such as a file's name, a label or a place in a folder. In Python
// it is what os.fsdecode() makes of it, so that open() finds the file. One with a character that no
// bytes stand for is refused with Error.
struct Name {
  std::string bytes;

  auto operator<=>(const Name&) const = default;
};

inline std::vector<Name> names_of(const std::vector<std::string>& texts) {
  std::vector<Name> names;
  for (const std::string& text : texts) names.push_back({text});
  return names;
}
inline std::vector<std::string> texts_of(const std::vector<Name>& names) {
  std::vector<std::string> texts;
  for (const Name& name : names) texts.push_back(name.bytes);
  return texts;
}

// Configuration keys with their values as text.
using Settings = std::vector<std::pair<Name, Name>>;

// Sets the fields of a configuration struct. Throws Error for an unknown key, naming the nearest.
template <typename Config>
Config configured(const Settings& settings) {
  Config config;
  Fields fields;
  config.describe(fields);
  for (const auto& [key, value] : settings) fields.set(key.bytes, value.bytes);
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

namespace pybind11::detail {

template <>
struct type_caster<riffle::python::Name> {
  PYBIND11_TYPE_CASTER(riffle::python::Name, const_name("str"));

  bool load(handle from, bool) {
    if (!PyUnicode_Check(from.ptr())) return false;
    const auto encoded = reinterpret_steal<object>(
        PyUnicode_AsEncodedString(from.ptr(), "utf-8", "surrogateescape"));
    if (!encoded) {
      PyErr_Clear();
      throw riffle::Error(riffle::cat("'", riffle::python::line_of(from),
                                      "' has half of a character (a lone surrogate)"));
    }
    value.bytes.assign(PyBytes_AsString(encoded.ptr()),
                       static_cast<std::size_t>(PyBytes_Size(encoded.ptr())));
    return true;
  }

  static handle cast(const riffle::python::Name& name, return_value_policy, handle) {
    return PyUnicode_DecodeUTF8(name.bytes.data(), static_cast<Py_ssize_t>(name.bytes.size()),
                                "surrogateescape");
  }
};

}  // namespace pybind11::detail
