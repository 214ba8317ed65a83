// Labelled pictures, and what a frozen encoder makes of them.
//
// A probe set is read from its stream once (collect) and then embedded by as many models as are
// compared. Where only the features are wanted, embed() takes the stream itself and holds two
// batches of pictures at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "riffle/model/objective.h"
#include "riffle/stream/stream.h"

namespace riffle {

struct LabelledPictures {
  at::Tensor pictures;  // [n, size, size, 3] uint8, contiguous, on the CPU
  std::vector<std::string> labels;
};

struct LabelledFeatures {
  at::Tensor
      features;  // [n, encoder_dim] float32 on the encoder's device, as the encoder gives them
  std::vector<std::string> labels;
};

// The next `max_samples` of the stream, or all that it has left when 0, each fitted to a square of
// `size` px. Throws Error for a sample without a label, naming it, for a stream that gives nothing,
// and for one so long that its pictures would fill half of the machine's memory.
LabelledPictures collect(Stream& stream, std::int64_t max_samples, int size);

// Evaluation mode, no gradient. Row i is a function of picture i alone. The model is used by no
// other thread meanwhile. `batch`: pictures encoded at once; 0: as many as suit the device.
LabelledFeatures embed(Objective& objective, const LabelledPictures& pictures,
                       std::int64_t batch = 0);

// Of the samples of one batch all but the pictures is there; row i of the features is sample i's.
using UseEmbedded =
    std::function<void(std::span<const Sample> samples, const at::Tensor& features)>;

// The features of the next `max_samples` of the stream (0: all that it has left), batch after
// batch, at the speed of the encoder: the next batch is read while one is encoded. Memory for two
// batches; labels are not needed. Shows progress. Gives the number of samples, which may be 0. When
// anything throws, the stream is stopped.
std::int64_t embed(Objective& objective, Stream& stream, std::int64_t max_samples, int size,
                   std::int64_t batch, const UseEmbedded& use);

// The same as one tensor, with the errors of collect().
LabelledFeatures embed(Objective& objective, Stream& stream, std::int64_t max_samples, int size,
                       std::int64_t batch = 256);

// Features of normalised pictures, [n, 3, size, size], which are brought to the encoder's device
// first. On a GPU the convolutions' algorithms are chosen by rule, not by trying all of them: a
// probe meets each shape a few times only, and gives the same whatever else runs.
at::Tensor encode_frozen(Objective& objective, const at::Tensor& normalised);

// Where the model's parameters live.
at::Device device_of(const Objective& objective);

}  // namespace riffle
