#include "python/bindings/bindings.h"

#include "riffle/run/run_folder.h"

namespace riffle::python {

void bind_run(py::module_& module) {
  module.def("run_config", [](const Name& path) {
    Config config = RunFolder::open(path.bytes).config();
    Fields fields;
    config.describe(fields);
    Settings values;
    for (const auto& field : fields.all()) values.emplace_back(Name{field.key}, Name{field.get()});
    return values;
  });
  module.def("run_checkpoints",
             [](const Name& path) { return RunFolder::open(path.bytes).checkpoint_names(); });
  module.def("run_metrics",
             [](const Name& path) { return Name{RunFolder::open(path.bytes).metrics().string()}; });
}

}  // namespace riffle::python
