#include "riffle/study/demo.h"

#include <algorithm>
#include <iomanip>
#include <sstream>

#include "riffle/base/error.h"
#include "riffle/base/text.h"
#include "riffle/stream/stream.h"

namespace riffle {
namespace {

// Found by trial, see docs/results/demo.md: pictures this small leave time for enough updates, and
// the mean of two runs a mode is steadier than one run twice as long.
constexpr std::int64_t kFrames = 256;    // a clip's length, N_seq
constexpr std::int64_t kSize = 16;       // of a picture, px
constexpr std::int64_t kUpdates = 3000;  // of each run
constexpr std::int64_t kRepeats = 2;     // runs of each mode; the table shows their mean
constexpr std::int64_t kProbeTrain = 2000;
constexpr std::int64_t kProbeVal = 2000;

void set_small_network(ConfigBuilder& builder) {
  builder.set("model.arch", "resnet10");
  builder.set("model.stem", "stride2");
  builder.set("model.width", "16");
  builder.set("model.residual_gamma", "1");  // a network this shallow learns little from identities
  builder.set("model.projector_hidden", "128");
  builder.set("model.projector_out", "128");
  builder.set("model.predictor_hidden", "32");
  builder.set("augment.size", std::to_string(kSize));
  builder.set("augment.crop_min", "0.4");
  builder.set("augment.blur", "0");
  builder.set("train.batch", "64");
  builder.set("train.updates", "2");
  builder.set("train.max_updates", std::to_string(kUpdates));
  builder.set("train.lr", "0.4");
  builder.set("train.weight_decay", "5e-4");
  builder.set("buffer.capacity", "512");
  // MinRed's own: features on arrival, and of a pair the newer leaves. Other policies do not read
  // these.
  builder.set("buffer.features", "arrival");
  builder.set("buffer.tie", "newer");
  builder.set("buffer.feature_type", "float32");
}

Mode make_mode(const DemoOptions& options, const std::string& name, const std::string& title,
               const std::string& policy, const std::string& order) {
  ConfigBuilder builder;
  set_small_network(builder);
  builder.set("stream.uri", cat("synthetic:?frames=", kFrames, "&size=", kSize, "&order=", order));
  builder.set("buffer.policy", policy);
  for (const auto& assignment : options.assignments) builder.set_assignment(assignment);
  if (policy == "none") builder.set("train.updates", "1");
  return {name, title, builder.build()};
}

const ModeOutcome& find(const Comparison& comparison, const std::string& name) {
  const auto found = std::find_if(comparison.modes.begin(), comparison.modes.end(),
                                  [&](const ModeOutcome& mode) { return mode.name == name; });
  if (found == comparison.modes.end()) throw std::logic_error("the demo has no mode " + name);
  return *found;
}

}  // namespace

ComparisonPlan demo_plan(const DemoOptions& options) {
  ComparisonPlan plan;
  plan.modes = {
      make_mode(options, "conventional", "Conventional (no buffer)", "none", "random"),
      make_mode(options, "fifo", "FIFO buffer", "fifo", "random"),
      make_mode(options, "reservoir", "Reservoir buffer", "reservoir", "random"),
      make_mode(options, "minred", "MinRed buffer", "minred", "random"),
      make_mode(options, "decorrelated", "Decorrelated source", "fifo", "decorrelated"),
  };
  plan.repeats = kRepeats;
  plan.seed = options.seed;
  plan.threads = options.threads;
  plan.recipe = linear_recipe("cached");
  // One frame of each of many other clips: seeds far from any that a run uses.
  const auto probe_set = [&](std::uint64_t seed, std::int64_t samples) {
    const auto stream = open_stream(cat("synthetic:?frames=1&size=", kSize, "&seed=", seed));
    return collect(*stream, samples,
                   static_cast<int>(plan.modes.front().config.learner.stored_size()));
  };
  plan.probe_train = probe_set(1'000'000'000 + 2 * options.seed, kProbeTrain);
  plan.probe_val = probe_set(1'000'000'001 + 2 * options.seed, kProbeVal);
  return plan;
}

std::string demo_verdict(const Comparison& comparison) {
  const double conventional = find(comparison, "conventional").linear_top1();
  const double fifo = find(comparison, "fifo").linear_top1();
  const double minred = find(comparison, "minred").linear_top1();
  const auto points = [](double difference) {
    return cat(fixed(std::abs(difference), 1), " points");
  };
  std::string text;
  if (fifo > conventional && minred > fifo) {
    text = cat("The paper's claim showed: a replay buffer learns ", points(fifo - conventional),
               " more than the bare stream, and keeping the least redundant samples (MinRed) adds "
               "another ",
               points(minred - fifo), ".");
  } else {
    text = cat("The paper's claim did not show in full this time: FIFO is ",
               points(fifo - conventional), fifo > conventional ? " above" : " below",
               " Conventional, and MinRed ", points(minred - fifo),
               minred > fifo ? " above" : " below",
               " FIFO. Runs this small differ by a few points from seed to seed.");
  }
  const double reservoir = find(comparison, "reservoir").linear_top1();
  text += cat(" Reservoir sampling, which the paper does not compare with, is ",
              points(reservoir - minred), reservoir > minred ? " above" : " below",
              " MinRed here: the embedded stream does not drift, which suits it.");
  return text;
}

std::string demo_table(const Comparison& comparison) {
  std::ostringstream table;
  table << std::fixed;
  const auto row = [&](const std::string& title, double linear, double knn) {
    table << "  " << std::left << std::setw(28) << title << std::right << std::setprecision(1)
          << std::setw(9) << linear << std::setw(9) << knn;
  };
  table << "  " << std::left << std::setw(28) << "mode" << std::right << std::setw(9) << "linear %"
        << std::setw(9) << "k-NN %" << std::setw(13) << "same clip %" << std::setw(7) << "clips"
        << '\n';
  row("untrained", comparison.untrained.linear_top1, comparison.untrained.knn_top1);
  table << '\n';
  for (const auto& mode : comparison.modes) {
    row(mode.title, mode.linear_top1(), mode.knn_top1());
    table << std::setw(13) << 100 * mode.same_clip_pairs() << std::setprecision(0) << std::setw(7)
          << mode.clips_in_buffer() << '\n';
  }
  return table.str();
}

}  // namespace riffle
