// A stream written in Python.
#pragma once

#include "python/bindings/bindings.h"

#include "riffle/stream/stream.h"

namespace riffle::python {

// `source` is a _Source of riffle/stream.py. The methods need no GIL: they take it.
class PythonStream : public Stream {
 public:
  explicit PythonStream(py::object source) : source_(std::move(source)) {}
  ~PythonStream() override;

  std::optional<Sample> next() override;
  std::string position() const override;
  void seek(const std::string& position) override;
  void stop() override;

 private:
  py::object source_;
  std::uint64_t given_ = 0;
};

}  // namespace riffle::python
