#include "apps/riffle/commands.h"

namespace riffle {

void add_bench_command(CLI::App& app) {
  CLI::App* bench =
      app.add_subcommand("bench", "Measure the speed of a part beside its peer, in one run");
  bench->require_subcommand(1);
  bench->footer("Example: riffle bench load");
  add_bench_load(*bench);
  add_bench_step(*bench);
  add_bench_pipeline(*bench);
  add_bench_minred(*bench);
  add_bench_ranks(*bench);
}

}  // namespace riffle
