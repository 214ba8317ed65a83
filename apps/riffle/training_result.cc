#include "apps/riffle/training_result.h"

#include "apps/riffle/print.h"
#include <nlohmann/json.hpp>

#include "riffle/base/log.h"
#include "riffle/base/text.h"
#include "riffle/dist/ranks.h"

namespace riffle {

void print_training_result(const std::string& run, const TrainingResult& result, bool json) {
  if (!is_first_process()) return;
  if (json) {
    print_json_line(nlohmann::ordered_json{{"run", run},
                                           {"updates", result.updates},
                                           {"samples_seen", result.samples_seen},
                                           {"loss", result.loss},
                                           {"images_per_s", result.images_per_s},
                                           {"skipped", result.skipped},
                                           {"stopped", result.stopped}});
  }
  const std::string done = cat(result.updates, " updates on ", result.samples_seen, " samples, ",
                               fixed(result.images_per_s, 0), " images/s. ");
  log_info(result.stopped ? cat("stopped: ", done, "Continue with: riffle resume ", shell_word(run))
                          : cat("done: ", done, "Next: riffle probe ", shell_word(run),
                                " --train URI --val URI"));
}

}  // namespace riffle
