#include "python/bindings/python_stream.h"

#include <tuple>

#include "python/bindings/pictures.h"

#include "riffle/base/error.h"
#include "riffle/base/log.h"
#include "riffle/base/text.h"

namespace riffle::python {
namespace {

// Calls a method of Python. What it raises is thrown as an Error of one line: the thread that reads
// a stream has nobody to show a traceback to.
template <typename Result, typename... Arguments>
Result call(const py::object& object, const char* method, const Arguments&... arguments) {
  const py::gil_scoped_acquire acquire;
  try {
    return object.attr(method)(arguments...).template cast<Result>();
  } catch (py::error_already_set& error) {
    throw Error(cat("the stream failed: ", line_of(error.type().attr("__name__")), ": ",
                    line_of(error.value())),
                ErrorKind::failure);
  }
}

}  // namespace

PythonStream::~PythonStream() {
  const py::gil_scoped_acquire acquire;
  source_ = {};
}

std::optional<Sample> PythonStream::next() {
  using Given = std::tuple<at::Tensor, std::int64_t, Name, Name>;
  auto given = call<std::optional<Given>>(source_, "next");
  if (!given) return std::nullopt;
  auto& [picture, clip, label, key] = *given;
  return Sample{.picture = picture_of(picture),
                .index = given_++,
                .clip = clip,
                .label = std::move(label.bytes),
                .key = std::move(key.bytes)};
}

std::string PythonStream::position() const { return call<Name>(source_, "position").bytes; }

void PythonStream::seek(const std::string& position) {
  given_ = call<std::uint64_t>(source_, "seek", Name{position});
}

// Called by destructors too, which must not throw.
void PythonStream::stop() {
  try {
    call<void>(source_, "stop");
  } catch (const Error& error) {
    log_warning(error.what());
  }
}

}  // namespace riffle::python
