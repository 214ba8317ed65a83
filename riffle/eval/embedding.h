// Labelled pictures, and what a frozen encoder makes of them.
//
// A probe set is read from its stream once (collect) and then embedded by as many models as are
// compared. Where only the features are wanted, embed() takes the stream itself and holds three
// batches of pictures at a time: one is read, one is encoded, and one is used.
//
// Several ranks (riffle/dist) share the work: of each round (picture_rounds.h), every one encodes
// its own batch. A batch is what it is for one process, so features have the same bits.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "riffle/dist/ranks.h"
#include "riffle/model/encoder.h"
#include "riffle/stream/stream.h"

namespace riffle {

// What an encoder sees of a picture: its short side is resized to `resize` px, and the centre of
// `crop` px is taken.
struct EncoderInput {
  int resize;
  int crop;

  // The whole centre square.
  EncoderInput(int size) : resize(size), crop(size) {}
  // Requires crop <= resize.
  EncoderInput(int resized, int cropped) : resize(resized), crop(cropped) {}

  bool operator==(const EncoderInput&) const = default;
};

struct LabelledPictures {
  at::Tensor pictures;  // [n, size, size, 3] uint8, contiguous, on the CPU
  std::vector<std::string> labels;
};

struct LabelledFeatures {
  // [n, encoder_dim] float32 on the encoder's device, as the encoder returns them.
  at::Tensor features;
  std::vector<std::string> labels;
};

// Returns the next `max_samples` of the stream (0: all that are left), each fitted to a square of
// `size` px. Throws Error for a sample without a label, naming it, for a stream without samples,
// and for one so long that its pictures would fill half of the machine's memory.
LabelledPictures collect(Stream& stream, std::int64_t max_samples, int size);

// Returns the features in evaluation mode, without gradient. Row i is a function of picture i
// alone. No other thread may use the model meanwhile. `batch`: pictures encoded at once; 0: as many
// as suit the device.
LabelledFeatures embed(Encoder& encoder, const LabelledPictures& pictures, std::int64_t batch = 0);

struct EmbeddedBatch {
  // Their pictures have no pixels any more, but the file if there was one.
  std::span<const Sample> samples;
  at::Tensor features;  // row i is sample i's
  // Where the stream was after the last of them.
  std::string position;
};
using UseEmbedded = std::function<void(const EmbeddedBatch& batch)>;

// Asked before each round of batches (picture_rounds.h) is encoded: true drops it and those not yet
// used, and ends the reading. All ranks ask at the same places, and must get the same answer. A
// round that is dropped may be shorter on one rank, whose stream was stopped.
using IsStopped = std::function<bool()>;

// Passes the features of the next `max_samples` of the stream (0: all that are left) to `use`,
// batch after batch, at the speed of the encoder: the next batches are read and encoded meanwhile.
// Needs memory for three batches, and no labels. Shows progress. Returns the number of samples,
// which may be 0. Stops the stream if anything throws. Every rank gets all features, in order.
std::int64_t embed(Encoder& encoder, Stream& stream, std::int64_t max_samples, EncoderInput input,
                   std::int64_t batch, const UseEmbedded& use, Ranks& ranks = one_rank(),
                   const IsStopped& is_stopped = {});

// Returns the same as one tensor. Throws Error as collect() does.
LabelledFeatures embed(Encoder& encoder, Stream& stream, std::int64_t max_samples,
                       EncoderInput input, std::int64_t batch = 256);

struct PictureBatch {
  // Their pictures have no pixels any more, but the file if there was one.
  std::span<const Sample> samples;
  at::Tensor pictures;  // [n, size, size, 3] uint8; row i is sample i's
  // Where the stream was after the last of them.
  std::string position;
};
using UseBatch = std::function<void(const PictureBatch& batch)>;

// Passes the next `max_samples` of the stream (0: all that are left), each fitted to a square of
// `size` px, to `use`, batch after batch, while the next one is read. Shows progress. Returns the
// number of samples. Stops the stream if anything throws.
std::int64_t read_batches(Stream& stream, std::int64_t max_samples, int size, std::int64_t batch,
                          const UseBatch& use, const IsStopped& is_stopped = {});

// Throws Error, naming the sample, if it has no label.
void require_label(const Sample& sample);
// Reads the first sample of a probe's stream. Throws Error if there is none, or it has no label. A
// stream that never ends is not read: it may have nothing yet.
void require_first_label(Stream& stream);

// Returns the features of pictures, [n, size, size, 3] uint8, of which the encoder sees the centre
// of `crop` px.
at::Tensor encode_pictures(Encoder& encoder, const at::Tensor& pictures, std::int64_t crop);

// Returns how many pictures of this size to encode at once.
std::int64_t suitable_batch(at::Device device, std::int64_t size);

// Returns features of normalised pictures, [n, 3, size, size], which move to the encoder's device
// first. On a GPU the convolutions' algorithms are chosen by rule, not by trying all of them: a
// probe meets each shape only a few times, and its result must not depend on what else runs.
at::Tensor encode_frozen(Encoder& encoder, const at::Tensor& normalised);

// Returns where the model's parameters lie.
at::Device device_of(const Encoder& encoder);

}  // namespace riffle
