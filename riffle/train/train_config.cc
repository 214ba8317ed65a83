#include "riffle/train/train_config.h"

#include <cmath>

#include "riffle/base/error.h"
#include "riffle/base/text.h"

namespace riffle {

void TrainConfig::describe(Fields& fields) {
  fields.add("train.batch", batch, "samples per update");
  fields.add("train.stream_batch", stream_batch,
             "samples per batch taken from the stream; 0: as many as per update");
  fields.add("train.updates", updates, "updates per stream batch (K); always 1 without a buffer");
  fields.add("train.fresh", fresh,
             "share of each update's batch that comes straight from the last stream batch; the "
             "rest is replayed");
  fields.add("train.max_updates", max_updates,
             "updates after which the run ends; the schedule's length; 0: no end");
  fields.add("train.drain", drain,
             "after the end of the stream, continue on what the buffer holds until max_updates; no "
             "effect without a buffer");
  fields.add("train.clock", clock, {{"lockstep", ClockKind::lockstep}, {"live", ClockKind::live}},
             "K updates per stream batch, or never waiting for the stream");
  fields.add("train.lr", lr, "learning rate for a batch of 256; scaled by batch/256");
  fields.add("train.momentum", momentum, "momentum of SGD");
  fields.add("train.weight_decay", weight_decay, "weight decay of SGD");
  fields.add("train.schedule", schedule,
             {{"cosine", ScheduleKind::cosine},
              {"constant", ScheduleKind::constant},
              {"constant-then-decay", ScheduleKind::constant_then_decay}},
             "learning rate over the run");
  fields.add("train.final_lr", final_lr, "where the cosine ends, as a share of lr");
  fields.add(
      "train.decay_from", decay_from,
      "constant-then-decay: share of the run before the decay; a run without an end has none");
  fields.add("train.fixed_predictor_lr", fixed_predictor_lr,
             "the predictor keeps the initial learning rate");
  fields.add("train.warm_features", warm_features,
             "updates before features on arrival are trusted");
  fields.add("train.precision", precision,
             {{"best", Precision::best},
              {"float32", Precision::float32},
              {"bfloat16", Precision::bfloat16}},
             "of activations; best: bfloat16 on a GPU, float32 on the CPU");
  fields.add("train.threads", threads,
             "CPU threads; 0: one per core, divided by the ranks of a machine");
}

std::int64_t TrainConfig::fresh_samples() const {
  return std::lround(fresh * static_cast<double>(batch));
}

void TrainConfig::validate() const {
  const auto require = [](bool holds, const char* message) {
    if (!holds) throw Error(message);
  };
  require(batch >= 2, "train.batch must be at least 2 (batch norm needs more than one sample)");
  constexpr std::int64_t kMost = std::int64_t{1} << 30;  // products of two stay whole numbers
  require(batch <= kMost, "train.batch must be at most 1073741824");
  require(stream_batch <= kMost, "train.stream_batch must be at most 1073741824");
  require(updates <= kMost, "train.updates must be at most 1073741824");
  require(stream_batch >= 0, "train.stream_batch must not be negative (0: train.batch)");
  require(updates >= 1, "train.updates must be at least 1");
  require(fresh >= 0 && fresh < 1, "train.fresh must be in [0, 1): a share of the batch");
  if (fresh > 0 && fresh_samples() == 0) {
    throw Error(cat("train.fresh=", fresh, " is no sample of a batch of ", batch,
                    "; give 0, or at least ", 0.5 / static_cast<double>(batch)));
  }
  if (fresh_samples() > samples_per_stream_batch()) {
    throw Error(cat("train.fresh=", fresh, " is ", fresh_samples(), " samples of a batch of ",
                    batch, ", more than the ", samples_per_stream_batch(), " of a stream batch"));
  }
  require(fresh_samples() < batch, "train.fresh leaves no sample of the batch to be replayed");
  require(max_updates >= 0, "train.max_updates must not be negative (0: no end)");
  require(max_updates > 0 || schedule != ScheduleKind::cosine,
          "train.schedule=cosine needs train.max_updates: a run without an end has none for it to "
          "aim at; take constant-then-decay, which keeps its rate there");
  require(max_updates > 0 || !drain,
          "train.drain needs train.max_updates: what the buffer holds has no end");
  require(lr > 0, "train.lr must be above 0");
  require(momentum >= 0 && momentum < 1, "train.momentum must be in [0, 1)");
  require(weight_decay >= 0, "train.weight_decay must not be negative");
  require(final_lr >= 0 && final_lr <= 1, "train.final_lr must be in [0, 1]: a share of lr");
  require(decay_from >= 0 && decay_from < 1,
          "train.decay_from must be in [0, 1): a share of the run");
  require(warm_features >= 0, "train.warm_features must not be negative");
  require(threads >= 0 && threads <= 4096,
          "train.threads must be between 0 (one per core) and 4096");
}

}  // namespace riffle
