#include "python/bindings/bindings.h"
#include "python/bindings/owned.h"
#include "python/bindings/pictures.h"
#include "python/bindings/python_stream.h"
#include "python/bindings/stream_handle.h"

#include "riffle/image/resize.h"
#include "riffle/stream/shapes/shape.h"

namespace riffle::python {
namespace {

// The picture, index, clip, label and key.
using GivenSample = std::tuple<at::Tensor, std::uint64_t, std::int64_t, Name, Name>;

OwnedStream owned(std::unique_ptr<Stream> stream) {
  return {"stream", std::make_shared<StreamHandle>(std::move(stream))};
}

OwnedStream open_uri(const Name& uri, const Name& shapes) {
  const py::gil_scoped_release release;
  return owned(open_stream(uri.bytes, shapes.bytes));
}

OwnedStream open_python(py::function make_source, const Name& shapes) {
  // A shape may open the stream again later, from any thread.
  const auto kept = std::shared_ptr<py::function>(new py::function(std::move(make_source)),
                                                  [](py::function* function) {
                                                    const py::gil_scoped_acquire acquire;
                                                    delete function;
                                                  });
  return owned(open_shapes(
      [kept]() -> std::unique_ptr<Stream> {
        const py::gil_scoped_acquire acquire;
        return std::make_unique<PythonStream>((*kept)());
      },
      shapes.bytes));
}

std::optional<GivenSample> next(const OwnedStream& stream) {
  auto sample = stream->next();
  if (!sample) return std::nullopt;
  return GivenSample(tensor_of(std::move(sample->picture)), sample->index, sample->clip,
                     Name{std::move(sample->label)}, Name{std::move(sample->key)});
}

}  // namespace

void bind_streams(py::module_& module) {
  py::class_<OwnedStream>(module, "Stream")
      .def("next", &next)
      .def("position", [](const OwnedStream& stream) { return Name{stream->position()}; })
      .def("seek", [](const OwnedStream& stream, const Name& to) { stream->seek(to.bytes); })
      .def("skipped", [](const OwnedStream& stream) { return stream->skipped(); })
      .def("stop", &OwnedStream::stop)
      .def("close", &OwnedStream::close);
  module.def("open_stream", &open_uri);
  module.def("open_python_stream", &open_python);
  module.def("fit_square", [](const at::Tensor& picture, int size) {
    const py::gil_scoped_release release;
    return tensor_of(fit_square(picture_of(picture), size));
  });
}

}  // namespace riffle::python
