#include "riffle/pages/shown_curves.h"

namespace riffle {

const std::vector<ShownCurve>& shown_curves() {
  static const std::vector<ShownCurve> all = {
      {.title = "Loss",
       .label = "loss",
       .key = "loss",
       .caption = "Of the method that learns. A low loss alone is not a sign of a good "
                  "representation: nearly equal frames are easy.",
       .smooth = true},
      {.title = "Collapse gauge",
       .label = "channel std x sqrt(dim)",
       .key = "std",
       .caption = "1 when features spread over the sphere, 0 when all are the same.",
       .smooth = true},
      {.title = "How much a batch repeats itself",
       .label = "same-clip pairs (%)",
       .key = "same_clip_pairs",
       .caption = "Share of the pairs in a training batch that come from one clip.",
       .factor = 100,
       .smooth = true},
      {.title = "What the buffer holds",
       .label = "distinct clips",
       .key = "buffer_clips",
       .caption = "Clips with at least one sample in the buffer."},
      {.title = "How old the buffer is",
       .label = "mean age (samples)",
       .key = "buffer_mean_age",
       .caption = "Samples that entered after one, mean over the buffer."},
      {.title = "How redundant the buffer is",
       .label = "median nearest distance",
       .key = "nearest_50%",
       .caption = "Cosine distance from a sample to the nearest other one in the buffer."},
      {.title = "Speed of training",
       .label = "images/s",
       .key = "updates_per_s",
       .caption = "Pictures that the optimiser used per second.",
       .per_batch = true,
       .smooth = true},
      {.title = "Speed of the stream",
       .label = "samples/s",
       .key = "samples_per_s",
       .caption = "Samples that entered the buffer per second.",
       .smooth = true},
      {.title = "Waiting for the stream",
       .label = "share of the time (%)",
       .key = "idle_share",
       .caption = "Time in which training waited because no batch had arrived.",
       .factor = 100,
       .smooth = true,
       .least = 0.01},
      {.title = "Learning rate", .label = "learning rate", .key = "lr", .caption = ""}};
  return all;
}

}  // namespace riffle
